"""A machine is suspended in the middle of an effect, and wakes up after another one took over: it happens once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.crash.stage import Stage, build, send_step
from tests.crash.test_supervisor import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.postgres
WAITS = 14
LEASE = {"JACKLINE_LEASE_SECONDS": "1"}
# A machine of its own, as far as jackline can tell: another name, and no process of the other one in sight.
MACHINE = ("unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c")
SEND = 'touch "$0/asked"; until [ -e "$0/go" ]; do sleep 0.05; done; exec "$@"'


class Machines:
    """Two hosts with homes of their own, which share one database and the folder of the work."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.first: subprocess.Popen[bytes] | None = None

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        program = f'hostname {name} && exec "$0" -m jackline "$@"'
        return subprocess.Popen(
            (*MACHINE, program, sys.executable, *words),
            cwd=self.stage.folder / "repository",
            env=self.stage.environment(**LEASE, JACKLINE_HOME=str(self.stage.folder / f"home-of-{name}")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, name: str, *words: str) -> tuple[int, bytes, bytes]:
        process = self.start(name, *words)
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err

    def signal_first(self, number: int) -> None:
        """Freeze or thaw every process of the first machine."""
        assert self.first is not None
        for pid in _list_descendants(self.first.pid):
            with contextlib.suppress(ProcessLookupError):  # a short-lived one, such as the `sleep` of the effect
                os.kill(pid, number)


def _list_descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


@pytest.fixture
def machines(tmp_path: Path, postgres_database: str) -> Iterator[Machines]:
    stage = build(tmp_path, postgres_database)
    made = Machines(stage)
    yield made
    if made.first is not None:
        made.first.kill()  # with --kill-child, everything below it ends, too
        made.first.communicate()


def test_an_effect_of_a_suspended_host_is_left_to_a_person(machines: Machines, tmp_path: Path) -> None:
    stage = machines.stage
    step = send_step(stage, "first")
    step["call"]["run"] = ["sh", "-c", SEND, str(tmp_path), *step["call"]["run"]]
    stage.write_script([step, {"say": "done"}])
    words = ("run", "task", "--agent", "scripted", "--run-id", stage.run_id, "--script", str(tmp_path / "script.json"))
    machines.first = machines.start("first", *words, "--policy", str(tmp_path / "policy.toml"))
    until("the effect to begin", (tmp_path / "asked").exists)
    machines.signal_first(signal.SIGSTOP)

    def is_taken_over() -> bool:
        code, out, _ = machines.end("second", "resume", stage.run_id, "--json")
        return code == WAITS and json.loads(out)["reason"] == "in_doubt"

    until("the lease of the suspended host to end", is_taken_over)
    assert stage.sent() == []
    (call,) = json.loads(machines.end("second", "show", stage.run_id, "--json")[1])["calls"]
    assert call["state"] == "in_doubt"
    assert "host first made the call" in call["reason"]
    # It wakes up, and makes the call: a person who believed the probe would have sent it twice.
    machines.signal_first(signal.SIGCONT)
    (tmp_path / "go").touch()
    machines.first.communicate(timeout=90)
    verdict = "happened" if stage.sent() else "did-not"
    assert machines.end("second", "answer", stage.run_id, call["id"], verdict)[0] == 0
    code, out, err = machines.end("second", "resume", stage.run_id, "--json")
    assert code == 0, (out, err)
    assert stage.sent() == ["first"]
