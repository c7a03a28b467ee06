"""Helper programs as the engine starts them, with a little gate in a thread. For tests of ollama, acp and command."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackline.domain.adapter import Adapter, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

SECONDS = 30  # for what should take a fraction of one
Json = dict[str, Any]
Answer = Callable[[Json], Json | None]
TELLING = ("end", "error", "limit", "session")


def allow(question: Json) -> Json:
    return {"decision": "allow", "call": "c-" + question["agent_call"]}


def deny(_question: Json) -> Json:
    return {"decision": "deny", "call": "c1", "reason": "not today"}


def ask(_question: Json) -> Json:
    return {"decision": "ask", "call": "c1", "reason": "a person must agree"}


class FakeGate:
    """Answers `prepare` as it is told (None: hangs up) and `finish` with ok; remembers every question."""

    def __init__(self, prepare: Answer = allow) -> None:
        self.prepare = prepare
        self.asked: list[Json] = []
        self._folder = tempfile.mkdtemp(prefix="gate")
        self.address = os.path.join(self._folder, "s")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.address)
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(SECONDS)
        shutil.rmtree(self._folder)

    def ops(self, op: str) -> list[Json]:
        return [question for question in self.asked if question["op"] == op]

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError), connection.makefile("rwb") as stream:
                    for line in stream:
                        answer = self._answer(json.loads(line))
                        if answer is None:
                            break
                        stream.write(json.dumps(answer).encode() + b"\n")
                        stream.flush()

    def _answer(self, question: Json) -> Json | None:
        self.asked.append(question)
        return self.prepare(question) if question["op"] == "prepare" else {"ok": True}


@dataclass(frozen=True)
class Done:
    """A finished turn."""

    code: int
    errors: str
    heard: tuple[Heard, ...]
    outcome: Outcome

    def kinds(self) -> list[str]:
        return [one.kind for one in self.heard]

    def of(self, kind: str) -> list[Heard]:
        return [one for one in self.heard if one.kind == kind]

    def texts(self, kind: str = "message") -> list[str]:
        return [one.text for one in self.of(kind)]


class Stage:
    """A workspace, an agent's folder, a gate, and the way the engine starts an agent there."""

    def __init__(self, adapter: Adapter, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.adapter = adapter
        self.workspace, self.agent, self.home = folder / "workspace", folder / "run" / "agent", folder / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        self.gate = FakeGate()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **(env or {})}
        self._started: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End what a test that failed has left."""
        self.gate.close()
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def request(self, prompt: str = "do it", **facts: Any) -> TurnRequest:
        given: Json = {"attempt": 1, "turn": 1, "role": "work", **facts}
        return TurnRequest(
            run_id="r1", prompt=prompt, workspace=str(self.workspace), folder=str(self.agent),
            gate=self.gate.address, token="secret", **given,
        )  # fmt: skip

    def start(self, prompt: str = "do it", **facts: Any) -> subprocess.Popen[bytes]:
        launch = self.adapter.launch(self.request(prompt, **facts))
        for path, content in launch.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        stdin = tempfile.TemporaryFile()  # noqa: SIM115 - closed below; the engine gives a file as well
        stdin.write(launch.stdin or b"")
        stdin.seek(0)
        process = subprocess.Popen(
            launch.argv,
            cwd=self.workspace,
            env={**self.env, **launch.env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        stdin.close()
        self._started.append(process)
        return process

    def play(self, prompt: str = "do it", seconds: float = SECONDS, **facts: Any) -> Done:
        return self.ended(self.start(prompt, **facts), seconds=seconds)

    def ended(self, process: subprocess.Popen[bytes], before: bytes = b"", seconds: float = SECONDS) -> Done:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        heard = tuple(one for line in (before + output).split(b"\n") for one in self.adapter.parse(line))
        code = process.returncode
        telling = tuple(one for one in heard if one.kind in TELLING)
        tail = errors.decode("utf-8", "replace")
        outcome = self.adapter.classify(Exit(None, -code) if code < 0 else Exit(code), telling, tail)
        return Done(code, tail, heard, outcome)


def heard_until(process: subprocess.Popen[bytes], word: str) -> bytes:
    """Its lines up to the one with that word."""
    assert process.stdout is not None
    lines = b""
    while word.encode() not in lines:
        line = process.stdout.readline()
        assert line, f"it ended before it said {word}: {lines!r}"
        lines += line
    return lines


def wait_until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
