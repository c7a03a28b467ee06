"""A crash at every durable write and every effect boundary of a run with five effects: each exactly once, or in doubt.

Never twice, never lost. The last test takes a guard away on purpose, and sees that this one would fail.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from jackline import crash_points
from tests.conftest import SAID, SLOW_BACKENDS
from tests.crash.stage import KILLED, Stage
from tests.programs import effect

if TYPE_CHECKING:
    from pathlib import Path

EFFECTS = ("one", "two", "three", "four", "five")
UNPROBED = "five"  # nobody but a person can say whether it happened
BOUNDARIES = tuple(f"{name}:{side}" for name in EFFECTS for side in ("before", "after"))
Crash = Callable[..., str | None]
MOST_TIMES = 60
WAITS = 14
SABOTAGE = os.path.join(os.path.dirname(__file__), "sabotage")
# Where each guard matters, and what is seen without it.
SABOTAGED = {
    "receipts": ("call.outcome.committed:3", "twice"),
    "doubts": ("two:after", "twice"),
    "intents": ("two:before", "lost"),
}


def build(folder: Path, database: str, run_id: str, boundary: str) -> Stage:
    folder.mkdir(exist_ok=True)
    stage = Stage(folder, database, run_id)
    (folder / "repository").mkdir()
    probe = f"{sys.executable} {effect.__file__} {stage.outbox} --probe"
    rule = '[[rule]]\ntool = "{}"\nclass = "effect"\ndecision = "allow"\nkey = ["name"]\ntarget = "{{name}}"\n'
    policy = rule.format("send") + f"probe = {json.dumps(probe)}\n" + rule.format("post")
    (folder / "policy.toml").write_text(policy)
    # It forgets: everything is asked for again from the first step, and only the ledger stands between.
    stage.write_script(steps(stage, boundary), session=False)
    return stage


def steps(stage: Stage, boundary: str) -> list[dict[str, Any]]:
    def made(name: str) -> dict[str, Any]:
        run = [sys.executable, effect.__file__, str(stage.outbox), "{name}", boundary]
        tool = "post" if name == UNPROBED else "send"
        return {"call": {"tool": tool, "input": {"name": name}, "run": run, "external_id": "{stdout}"}}

    edit = {"edit": {"path": "note.txt", "content": "hello\n"}}
    read = {"call": {"tool": "read", "input": {"path": "note.txt"}, "run": ["cat", "note.txt"]}}
    return [edit, made("one"), made("two"), read, made("three"), made("four"), made("five"), {"say": "done"}]


def seen(stage: Stage) -> Counter[str]:
    return Counter(stage.outbox.read_text().split()) if stage.outbox.exists() else Counter()


def judged(stage: Stage, point: str, **more: str) -> str:
    """What is wrong in the end; empty if every effect is there once. A doubt is answered by looking outside."""
    resumed = stage.resume(**more)
    for _ in range(3):
        twice = [name for name, times in seen(stage).items() if times > 1]
        if twice:
            return f"{point}: twice: {twice}"
        if resumed.returncode != WAITS:
            break
        answer(stage, json.loads(resumed.stdout))
        resumed = stage.resume(**more)
    if resumed.returncode != 0:
        return f"{point}: exit {resumed.returncode}: {resumed.stdout!r} {resumed.stderr!r}"
    lost = [name for name in EFFECTS if not seen(stage)[name]]
    return f"{point}: lost: {lost}" if lost else ""


def answer(stage: Stage, run: dict[str, Any]) -> None:
    """A person looks into the world outside and says what is there."""
    assert run["reason"] == "in_doubt", run
    shown = json.loads(stage.command("show", stage.run_id, "--json").stdout)
    for call in (one for one in shown["calls"] if one["state"] == "in_doubt" and one["call_class"] == "effect"):
        name = json.loads(call["input"])["name"] if isinstance(call["input"], str) else call["input"]["name"]
        assert name == UNPROBED, f"{name} has a probe, and nobody asked it"
        said = stage.command("answer", stage.run_id, call["id"], "happened" if seen(stage)[name] else "did-not")
        assert said.returncode == 0, said.stderr


def crashed(folder: Path, database: str, run_id: str, point: str, **more: str) -> str | None:
    """What a crash at this point led to; None if the run never came there."""
    boundary = point if point in BOUNDARIES else ""
    stage = build(folder, database, run_id, boundary)
    process = stage.start(**({} if boundary else {"JACKLINE_CRASH_AT": point}), **more)
    out, err = process.communicate(timeout=90)
    if process.returncode != KILLED:
        assert process.returncode == 0, (point, process.returncode, out, err)
        return None
    return judged(stage, point, **more)


def recovered_twice(folder: Path, database: str, run_id: str, point: str, **more: str) -> str | None:
    """The same for a crash of the recovery from a crash right after the second effect."""
    stage = build(folder, database, run_id, "two:after")
    stage.start(**more).communicate(timeout=90)
    if stage.resume(JACKLINE_CRASH_AT=point, **more).returncode != KILLED:
        return None
    return judged(stage, f"recovery, {point}", **more)


class Trial:
    """Every crash in a place of its own, counted."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.points = 0
        self.wrong: list[str] = []

    def at(self, point: str, crash: Crash = crashed) -> bool:
        """False if the run never came to the point."""
        name = f"run-{self.points}-{point.replace(':', '-').replace('.', '-')}"
        folder = self.folder / name
        place = self.database if "://" in self.database else str(folder / "home" / "state.sqlite")
        found = crash(folder, place, name, point)
        if found is None:
            return False
        self.points += 1
        self.wrong += [found] if found else []
        return True

    def at_every(self, point: str, crash: Crash = crashed) -> None:
        """The first, second, third, … time that the point is reached, until it is not reached any more."""
        for time in range(1, MOST_TIMES):
            if not self.at(f"{point}:{time}", crash):
                return
        pytest.fail(f"{point} is reached {MOST_TIMES} times and more")


@pytest.mark.full
def test_each_of_five_effects_is_made_once_wherever_the_run_dies(
    tmp_path: Path, database: str, record_property: Callable[[str, object], None]
) -> None:
    trial = Trial(tmp_path, database)
    for boundary in BOUNDARIES:
        assert trial.at(boundary), boundary
    for point in crash_points.POINTS:
        trial.at_every(point)
    for point in crash_points.POINTS:
        trial.at_every(point, recovered_twice)
    said = f"{trial.points} crash points of a run with {len(EFFECTS)} effects, {len(trial.wrong)} of them wrong"
    record_property(SAID, said)
    assert not trial.wrong
    assert trial.points > len(BOUNDARIES) + len(crash_points.POINTS)


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize("boundary", [f"{UNPROBED}:before", f"{UNPROBED}:after", "two:before", "two:after"])
def test_dead_at_the_boundary_of_an_effect(tmp_path: Path, database: str, boundary: str) -> None:
    assert crashed(tmp_path / "place", database, "run-1", boundary) == ""


@pytest.mark.parametrize("guard", SABOTAGED)
def test_without_one_of_the_guards_it_would_fail(tmp_path: Path, guard: str) -> None:
    point, what = SABOTAGED[guard]
    database = str(tmp_path / "place" / "home" / "state.sqlite")
    found = crashed(tmp_path / "place", database, "run-1", point, PYTHONPATH=SABOTAGE, SABOTAGE=guard)
    assert found is not None
    assert what in found
