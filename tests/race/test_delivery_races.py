"""Several processes deliver the same notices: each message is sent once, and again only after a kill, with its id."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline import clock as clocks
from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.domain.records import SubjectNotice
from jackline.features.notify import delivery
from jackline.features.notify.channel_settings import load_channels
from jackline.features.notify.delivery_store import CLAIM_MS
from tests.support.ntfy_server import NtfyServer

PROCESSES, NOTICES = 4, 24
SECONDS = 60.0
DELIVER = """
import os, sys, time, json
from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.features.notify.delivery import deliver_due
with Home(load_config(os.environ, "/", project=False)) as home:
    home.store()
    print("ready", flush=True)
    sys.stdin.readline()
    counts = deliver_due(home, f"process-{os.getpid()}", time.monotonic() + 60, ignores_backoff=True)
    print(json.dumps(counts._asdict()), flush=True)
"""


@pytest.fixture
def server() -> Iterator[NtfyServer]:
    with NtfyServer() as server:
        yield server


@pytest.fixture
def environ(tmp_path: Path, database: str, server: NtfyServer) -> dict[str, str]:
    folder = tmp_path / ".config" / "jackline"
    folder.mkdir(parents=True)
    table = f'[channels.phone]\ntype = "ntfy"\nurl = "{server.url}"\ntopic = "watch"\n'
    (folder / "config.toml").write_text(table)
    home = str(tmp_path / "home")
    os.makedirs(home, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "JACKLINE_HOME": home, "JACKLINE_DATABASE": database}


def add_notices(environ: dict[str, str], count: int) -> None:
    with Home(load_config(environ, "/", project=False)) as home:
        delivery.plan_deliveries(home, load_channels(home.config)[0])  # the channel exists from now on
        for number in range(count):
            home.store().notices.add(
                SubjectNotice(f"notice-{number}", "home", "test", f"title {number}", "", clocks.wall_ms() + 1)
            )


def start(environ: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", DELIVER], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def list_ids(server: NtfyServer) -> list[str]:
    return [json.loads(request.body)["sequence_id"] for request in server.requests]


def test_four_processes_send_each_message_once(environ: dict[str, str], server: NtfyServer) -> None:
    add_notices(environ, NOTICES)
    processes = [start(environ) for _ in range(PROCESSES)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = [json.loads(process.communicate(timeout=SECONDS)[0]) for process in processes]
    assert sum(one["sent"] for one in counts) == NOTICES
    assert sorted(list_ids(server)) == sorted(f"notice-{number}" for number in range(NOTICES))


def test_a_killed_process_sends_its_message_at_least_once(
    environ: dict[str, str], server: NtfyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies while the server has its request and has not answered."""
    add_notices(environ, 1)
    never = server.hang()
    process = start(environ)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    server.wait_for_requests(1)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    server.die()
    never.set()
    server.start()
    with Home(load_config(environ, "/", project=False)) as home:
        until = time.monotonic() + SECONDS
        assert delivery.deliver_due(home, "next", until).sent == 0  # it might still be sending
        later = clocks.wall_ms() + CLAIM_MS + 1000
        monkeypatch.setattr(clocks, "wall_ms", lambda: later)
        assert delivery.deliver_due(home, "next", until).sent == 1
    assert list_ids(server) == ["notice-0", "notice-0"]
