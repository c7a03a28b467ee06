"""A real SIGKILL at every named crash point of a run, then a resume: succeeded, each effect once, nothing left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jackline import crash_points
from tests.conftest import SLOW_BACKENDS
from tests.crash.stage import KILLED, RUN, build, usual_steps
from tests.support.slow_cases import keep_every_other

if TYPE_CHECKING:
    from pathlib import Path

# Reached only while recovering, so these need a first crash to be reached at all.
IN_RECOVERY = ("probe.finished", "call.judged", "leftovers.ended")
OF_THE_HOST = ("host.effect.made",)  # only with a pull request: `tests/integration/test_pull_request_loop.py`
FIRST_CRASH = "call.outcome.begun:2"
MOST_TIMES = 40


def run_until_killed(folder: Path, database: str, point: str, *, session: bool, run_id: str = RUN) -> str:
    stage = build(folder, database, run_id)
    stage.write_script(usual_steps(stage), session=session)
    process = stage.start(JACKLINE_CRASH_AT=point)
    out, err = process.communicate(timeout=60)
    if process.returncode != KILLED:
        return f"not killed: {process.returncode} {out!r} {err!r}"
    resumed = stage.resume()
    assert resumed.returncode == 0, (point, resumed.stdout, resumed.stderr)
    assert json.loads(resumed.stdout)["state"] == "succeeded"
    assert sorted(stage.sent()) == ["first", "second"], point
    assert stage.processes_left() == []
    return "killed"


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize("session", [True, pytest.param(False, marks=pytest.mark.full)], ids=["remembers", "forgets"])
@pytest.mark.parametrize(
    "point", keep_every_other([p for p in crash_points.POINTS if p not in IN_RECOVERY + OF_THE_HOST])
)
def test_killed_once_at_each_point(tmp_path: Path, database: str, point: str, session: bool) -> None:
    assert run_until_killed(tmp_path, database, point, session=session) == "killed"


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize("point", IN_RECOVERY)
def test_killed_again_while_recovering(tmp_path: Path, database: str, point: str) -> None:
    stage = build(tmp_path, database)
    process = stage.start(JACKLINE_CRASH_AT=FIRST_CRASH)
    process.communicate(timeout=60)
    assert process.returncode == KILLED
    again = stage.resume(JACKLINE_CRASH_AT=point)
    assert again.returncode == KILLED, (again.stdout, again.stderr)
    resumed = stage.resume()
    assert resumed.returncode == 0, (resumed.stdout, resumed.stderr)
    assert sorted(stage.sent()) == ["first", "second"]
    assert stage.processes_left() == []


@pytest.mark.full
@pytest.mark.parametrize("point", [p for p in crash_points.POINTS if p not in IN_RECOVERY + OF_THE_HOST])
def test_killed_at_every_occurrence_of_each_point(tmp_path: Path, database: str, point: str) -> None:
    """The second, third, … time that the point is reached, until it is not reached any more."""
    for time in range(1, MOST_TIMES):
        folder = tmp_path / str(time)
        folder.mkdir()
        place = database if "://" in database else str(folder / "home" / "state.sqlite")
        outcome = run_until_killed(folder, place, f"{point}:{time}", session=True, run_id=f"run-{time}")
        if outcome != "killed":
            assert time > 1, outcome
            return
    pytest.fail(f"{point} is reached {MOST_TIMES} times and more")
