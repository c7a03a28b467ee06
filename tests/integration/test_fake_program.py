"""`python -m jackline.fake` as its callers start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

SECONDS = 60
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "Bash"}]}


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "jackline.fake", *words]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    place = tmp_path / "script.json"
    place.write_text('{"replies": [{"say": "hello"}], "otherwise": {"say": "never ends", "hang": "middle"}}')
    return place


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(argv(*words), stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def ask(place: str) -> str:
    asked = urllib.request.Request(f"{place}/v1/messages", json.dumps(BODY).encode())  # noqa: S310 - loopback
    with urllib.request.urlopen(asked, timeout=SECONDS) as response:  # noqa: S310
        return str(json.load(response)["content"][0]["text"])


def test_it_serves_until_its_input_ends(script: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with started("--script", str(script), "--log", str(log)) as process:
        assert ask(address(process)) == "hello"
        assert process.communicate(timeout=SECONDS) == ("", "")
        assert process.returncode == 0
    assert json.loads(log.read_text())["text"] == "hi"
    assert log.stat().st_mode & 0o777 == 0o600, "prompts are for their owner only"


def test_sigterm_ends_it_cleanly_even_while_a_request_hangs(script: Path) -> None:
    with started("--script", str(script)) as process:
        place = urlsplit(address(process))
        assert ask(place.geturl()) == "hello"
        with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=SECONDS) as client:
            body = json.dumps(BODY).encode()
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            assert client.recv(1)  # the answer has begun
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
            while client.recv(65_536):
                pass
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_port_can_be_chosen_and_must_be_free(script: Path) -> None:
    port = str(20_000 + os.getpid() % 10_000)  # below those that the kernel gives to whoever asks for any
    with started("--script", str(script), "--port", port) as first:
        assert address(first).endswith(f":{port}")
        second = subprocess.run(
            argv("--script", str(script), "--port", port), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    assert (second.returncode, second.stdout) == (2, "")
    assert "cannot start" in second.stderr
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"{", "is not JSON"),
        (b'{"replies": [{"shel": "ls"}]}', "has 'shel'"),
    ],
)
def test_a_bad_script_is_one_line_and_exit_2(content: bytes | None, words: str, tmp_path: Path) -> None:
    place = tmp_path / "script.json"
    if content is not None:
        place.write_bytes(content)
    ended = subprocess.run(
        argv("--script", str(place)), capture_output=True, text=True, timeout=SECONDS, check=False
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_one_line_and_exit_2(port: str, script: Path) -> None:
    ended = subprocess.run(
        argv("--script", str(script), "--port", port), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
