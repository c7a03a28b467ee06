"""The supervisor killed, frozen, or killed with everything else: no agent works on, and the resume is exact."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from jackline.files import is_unlocked
from jackline.scenarios.sandbox import is_stopped
from tests.conftest import SLOW_BACKENDS
from tests.crash.stage import KILLED, Stage, build, send_step, usual_steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 60.0


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something in the world outside; the bound is only there to fail, never to pass."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            pytest.fail(f"waited {PATIENCE_S:.0f} s for: {what}")
        time.sleep(0.01)


def halting_steps(stage: Stage, halt: int) -> list[dict[str, Any]]:
    """The usual script, which on its first attempt stops before step `halt` and waits there to be killed."""
    steps = usual_steps(stage)
    pause: list[dict[str, Any]] = [
        {"touch": str(stage.folder / "here"), "when": {"attempt": 1}},
        {"hang": True, "when": {"attempt": 1}},
    ]
    return steps[:halt] + pause + steps[halt:]


def finish(stage: Stage) -> None:
    """Resume and look at the end."""
    resumed = stage.resume()
    assert resumed.returncode == 0, (resumed.stdout, resumed.stderr)
    assert json.loads(resumed.stdout)["state"] == "succeeded"
    assert sorted(stage.sent()) == ["first", "second"]
    assert stage.processes_left() == []


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == KILLED


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize("halt", [pytest.param(one, marks=pytest.mark.full) if one % 2 else one for one in range(8)])
def test_supervisor_killed_between_any_two_steps(tmp_path: Path, database: str, halt: int) -> None:
    stage = build(tmp_path, database)
    stage.write_script(halting_steps(stage, halt))
    process = stage.start()
    until("the agent to reach its halt", (tmp_path / "here").exists)
    kill(process)
    finish(stage)


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
def test_the_agent_dies_with_its_supervisor(tmp_path: Path, database: str) -> None:
    """Without any resume: the warden alone ends the tree, a detached child included."""
    stage = build(tmp_path, database)
    daemon = {"daemon": {"seconds": 60}, "when": {"attempt": 1}}
    stage.write_script([daemon, *halting_steps(stage, 0)])
    process = stage.start()
    until("the agent to hang", (tmp_path / "here").exists)
    kill(process)
    until("every process of the run to be dead", lambda: stage.processes_left() == [])
    finish(stage)


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
def test_everything_killed_at_once_leaves_a_stray_that_the_resume_ends(tmp_path: Path, database: str) -> None:
    """Supervisor, warden and agent die in one instant; a shell in its own session works on until the resume."""
    stage = build(tmp_path, database)
    stray = {"call": {"tool": "read", "input": {}, "run": ["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"]}}
    stage.write_script([{**stray, "when": {"attempt": 1}}, *halting_steps(stage, 0)])
    process = stage.start()
    until("the agent to hang", (tmp_path / "here").exists)
    until("the stray to be itself", lambda: bool(strays_of(stage)))
    alive, strays = stage.processes_left(), strays_of(stage)
    doomed = [process.pid, *(pid for pid in alive if pid not in strays)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in doomed:
            os.kill(pid, number)
    process.communicate(timeout=PATIENCE_S)
    until("the stray to be alone", lambda: stage.processes_left() == strays)
    finish(stage)


def strays_of(stage: Stage) -> list[int]:
    """What a call left behind; a shell that has not become the program yet does not count."""
    return [pid for pid in stage.processes_left() if _command(pid).startswith("sleep")]


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stopped_between_writes(process: subprocess.Popen[bytes], gate: str) -> bool:
    """Who is stopped in the middle of a write holds the file, and nobody can take over: docs/promise.md."""
    process.send_signal(signal.SIGSTOP)
    until("it to stand still", lambda: is_stopped(process.pid))
    if not os.path.exists(gate) or is_unlocked(gate):
        return True
    process.send_signal(signal.SIGCONT)
    return False


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
def test_frozen_longer_than_its_lease_and_thawed_as_a_zombie(tmp_path: Path, database: str) -> None:
    stage = build(tmp_path, database)
    stage.write_script(halting_steps(stage, 3))
    process = stage.start(JACKLINE_LEASE_SECONDS="3")
    until("the agent to hang", (tmp_path / "here").exists)
    until("a moment between two writes", lambda: stopped_between_writes(process, f"{database}.gate"))
    until("the warden to end the tree at its deadline", lambda: stage.processes_left() == [])
    until("the lease to run out", lambda: stage.resume().returncode == 0)
    sent = stage.sent()
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"belongs to another attempt" in out + err
    assert stage.sent() == sent == ["first", "second"]
    shown = json.loads(stage.command("show", stage.run_id, "--json").stdout)
    assert shown["state"] == "succeeded"


@pytest.mark.parametrize("delay_ms", range(0, 700, 70))
@pytest.mark.full
def test_supervisor_killed_at_any_moment(tmp_path: Path, database: str, delay_ms: int) -> None:
    """Not at a chosen point but at a chosen time: here time is the input, not a way to wait."""
    stage = build(tmp_path, database)
    process = stage.start()
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    if stage.resume().returncode == 2:  # killed before the run was written down: nothing to resume
        again = stage.start()
        again.communicate(timeout=60)
        assert again.returncode == 0
    assert sorted(stage.sent()) == ["first", "second"]
    assert stage.processes_left() == []


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
def test_the_agent_killed_inside_a_call_is_started_again(tmp_path: Path, database: str) -> None:
    stage = build(tmp_path, database)
    crash = {"crash": "SIGKILL", "when": {"attempt": 1}}
    stage.write_script([send_step(stage, "first"), crash, *usual_steps(stage)[1:]])
    process = stage.start(JACKLINE_RETRY_SECONDS="0")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert sorted(stage.sent()) == ["first", "second"]
    assert json.loads(out)["attempt"] == 2
