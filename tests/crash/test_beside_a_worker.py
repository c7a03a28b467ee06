"""Other commands, a cancel or a death beside a worker: what is committed stays, and every request is heeded."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import SLOW_BACKENDS
from tests.crash.stage import PROGRAM, Stage, build, send_step
from tests.crash.test_supervisor import PATIENCE_S, halting_steps, until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)


def without_json(stage: Stage) -> subprocess.Popen[bytes]:
    """`jackline run` as a person types it: with a progress line, which has a connection of its own."""
    words = ["run", "task", "--agent", "scripted", "--run-id", stage.run_id, "--proof", "test -s note.txt"]
    words += ["--script", str(stage.folder / "script.json"), "--policy", str(stage.folder / "policy.toml")]
    return stage._open(words)


def reason_of(stage: Stage) -> str | None:
    reason: str | None = json.loads(stage.command("show", stage.run_id, "--json").stdout or "{}").get("reason")
    return reason


def test_what_a_worker_wrote_survives_the_looks_of_others(tmp_path: Path, database: str) -> None:
    """A forgetting agent, so that only the ledger stands between it and a second message."""
    stage = build(tmp_path, database)
    started = {"touch": str(tmp_path / "started")}
    stage.write_script([started, {"wait_for": str(tmp_path / "go")}, *halting_steps(stage, 5)], session=False)
    process = without_json(stage)
    until("the agent to start", (tmp_path / "started").exists)
    assert stage.command("list", "--all-repos").returncode == 0
    (tmp_path / "go").touch()
    until("the agent to hang after both effects", (tmp_path / "here").exists)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    resumed = stage.resume()
    assert resumed.returncode == 0, resumed.stderr
    assert sorted(stage.sent()) == ["first", "second"]


def test_a_cancel_just_before_a_park_is_heeded(tmp_path: Path, database: str) -> None:
    """The worker has not looked for requests since; its own write finds the request."""
    stage = build(tmp_path, database)
    limit: list[dict[str, Any]] = [
        {"touch": str(tmp_path / "here")},
        {"wait_for": str(tmp_path / "go")},
        {"limit": {"resets_in": 3600}},
    ]
    stage.write_script(limit)
    process = stage.start()
    until("the agent to start", (tmp_path / "here").exists)
    assert stage.command("cancel", stage.run_id, "--no-wait").returncode == 0
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, json.loads(out)["state"]) == (17, "cancelled")


def test_a_cancel_during_a_retry_wait_ends_the_runner_as_cancelled(tmp_path: Path, database: str) -> None:
    stage = build(tmp_path, database)
    stage.write_script([{"crash": "SIGKILL"}])
    process = stage.start(JACKLINE_RETRY_SECONDS="4")
    until("the run to wait for its retry", lambda: reason_of(stage) == "retry")
    assert stage.command("cancel", stage.run_id).returncode == 0
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, json.loads(out)["state"]) == (17, "cancelled")


def test_an_agent_that_dies_while_its_effect_is_probed(tmp_path: Path, database: str) -> None:
    """The report's probe and the recovery must not judge the same call at once."""
    stage = build(tmp_path, database)
    probe = f"touch {tmp_path}/probing; sleep 1; {sys.executable} {PROGRAM} probe {stage.outbox}"
    rule = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to", "text"]\n'
    (tmp_path / "policy.toml").write_text(rule + f"probe = {json.dumps(probe)}\n")
    step = send_step(stage, "first")
    send = " ".join(step["call"]["run"])
    dies = f"while ! test -e {tmp_path}/probing; do sleep 0.02; done; kill -9 $PPID"
    step["call"]["run"] = f"{send}; ({dies}) & exit 3"
    stage.write_script([{**step, "when": {"attempt": 1}}, {"edit": {"path": "note.txt", "content": "x"}}])
    process = stage.start(JACKLINE_RETRY_SECONDS="0")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert stage.sent() == ["first"]
