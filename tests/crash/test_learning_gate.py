"""A real SIGKILL around the look at a case's learnings, on both stores: a resume looks again, nothing slips through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from jackline.features.cases.learning import REVIEW_COMMAND
from tests.conftest import SLOW_BACKENDS
from tests.crash.stage import KILLED, RUN, Stage, build

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)

UNRESOLVED = 16
START = "jackline case start 'why?' --skip-intake"
LEARN = "jackline case learning add --kind doc-gap --summary cold --repo-action docs --path note.txt"
REASON = "jackline case learning add --kind doc-gap --summary cold --repo-action none --reason 'a one-off'"
# Killed as the look ends, as its result is written, before the proof begins, and as the proof ends.
POINTS = ("check.finished:1", "check.finished:2", "advance.committed:4", "advance.begun:5", "advance.committed:6")


def shell(command: str) -> dict[str, Any]:
    return {"call": {"tool": "shell", "input": {"command": command}, "run": command}}


def killed(folder: Path, database: str, point: str, *commands: str) -> Stage:
    stage = build(folder, database)
    stage.write_script([{"edit": {"path": "note.txt", "content": "words\n"}}, *map(shell, commands)])
    process = stage.start(JACKLINE_CRASH_AT=point)
    out, err = process.communicate(timeout=60)
    assert process.returncode == KILLED, (out, err)
    return stage


def reviews(stage: Stage) -> list[int | None]:
    told = json.loads(stage.command("show", RUN, "--json").stdout)
    return [check["exit_code"] for check in told["checks"] if check["command"] == REVIEW_COMMAND]


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_what_is_resolved_succeeds_after_any_crash(tmp_path: Path, database: str, point: str) -> None:
    stage = killed(tmp_path, database, point, START, REASON)
    resumed = stage.resume()
    assert resumed.returncode == 0, (resumed.stdout, resumed.stderr)
    assert json.loads(resumed.stdout)["proof"] == "proved"
    assert reviews(stage)[-1] == 0
    assert stage.processes_left() == []


def test_what_is_unresolved_fails_after_a_crash_as_before_it(tmp_path: Path, database: str) -> None:
    stage = killed(tmp_path, database, "check.finished:1", START, LEARN)
    resumed = stage.resume()
    assert resumed.returncode == UNRESOLVED, (resumed.stdout, resumed.stderr)
    told = json.loads(resumed.stdout)
    assert (told["failure"], told["proof"]) == ("no_progress", "unverified")  # the next iteration resolved nothing
    assert reviews(stage) == [None, 1, 1]
