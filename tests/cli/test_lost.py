"""A run whose process was killed is lost: every command says so at once on its host, with the command to continue."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.cli.place import SAY, Place, is_one_line
from tests.conftest import SLOW_BACKENDS

HANG_ONCE = {"hang": True, "when": {"attempt": 1}}


@pytest.fixture(params=SLOW_BACKENDS)
def stored(request: pytest.FixtureRequest, place: Place) -> Place:
    """A place with each kind of database."""
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = str(request.getfixturevalue("postgres_database"))
    return place


def lose(place: Place, run_id: str, *steps: dict[str, Any]) -> None:
    """Start a run and kill its process with SIGKILL while its agent works."""
    running = place.start_playing({"touch": place.path(f"on-{run_id}")}, *steps, words=("--run-id", run_id))
    place.wait_for(f"on-{run_id}")
    running.kill()
    running.wait()


def test_a_killed_run_is_shown_as_lost_at_once(stored: Place) -> None:
    lose(stored, "r", HANG_ONCE, SAY)
    listed = stored.type("list")
    assert "\tlost\t" in listed.out, listed
    assert listed.err.rstrip().endswith("continue: jackline resume r")
    assert "is gone" in listed.err
    [row] = stored.type("list", "--json").rows
    assert (row["state"], row["lost"], row["exit_code"]) == ("running", True, None)
    shown = stored.type("show", "r").out
    assert "\nstate      lost: its process (pid " in shown
    assert "\ncontinue: jackline resume r\n" in shown
    assert stored.type("show", "r", "--json").json["lost"] is True
    for words in (("logs", "-f", "r"), ("logs", "-f", "--events", "r")):
        followed = stored.type(*words)
        assert followed.code == 0
        assert followed.err.rstrip().endswith("continue: jackline resume r"), followed
    assert [row["id"] for row in stored.type("list", "--state", "lost", "--json").rows] == ["r"]
    assert stored.type("list", "--state", "waiting", "--state", "lost").out == listed.out
    board = stored.type("dashboard", "--print").out
    assert "is **lost**: `its process (pid " in board
    assert f"jackline resume r --home {stored.home}`\n" in board
    assert "## Running\n\nNone." in board
    assert stored.type("resume", "r").code == 0
    [row] = stored.type("list", "--json").rows
    assert (row["state"], row["lost"]) == ("succeeded", False)
    assert stored.type("list", "--state", "lost").out == ""


def test_who_follows_a_run_learns_that_it_is_lost(stored: Place) -> None:
    running = stored.start_playing({"touch": stored.path("on")}, SAY, HANG_ONCE, words=("--run-id", "r"))
    stored.wait_for("on")
    following = stored.start("logs", "-f", "--events", "r")
    assert following.stdout is not None
    while "turn.started" not in following.stdout.readline():
        pass
    running.kill()
    running.wait()
    ended = stored.end_of(following)
    assert (ended.code, "run r is lost: its process" in ended.err) == (0, True), ended


def test_a_run_that_works_or_waits_is_not_lost(stored: Place) -> None:
    running = stored.start_playing({"touch": stored.path("on")}, HANG_ONCE, words=("--run-id", "r"))
    stored.wait_for("on")
    assert "lost" not in stored.type("list").out
    assert stored.type("list", "--state", "lost").out == ""
    assert [row["lost"] for row in stored.type("list", "--state", "running", "--json").rows] == [False]
    running.send_signal(signal.SIGINT)
    assert stored.end_of(running).code == 130
    assert [row["lost"] for row in stored.type("list", "--json").rows] == [False]


def test_a_stopped_process_is_lost_when_its_lease_is_over(stored: Place) -> None:
    """As on another host, which cannot look at the process."""
    stored.environ["JACKLINE_LEASE_SECONDS"] = "1"
    running = stored.start_playing({"touch": stored.path("on")}, HANG_ONCE, words=("--run-id", "r"))
    stored.wait_for("on")
    os.kill(running.pid, signal.SIGSTOP)
    followed = stored.type("logs", "-f", "r")
    assert "no longer renews its lease; continue: jackline resume r" in followed.err, followed


def test_lost_runs_are_continued_one_after_the_other(stored: Place) -> None:
    fails = {"error": {"class": "authentication", "detail": "log in"}, "when": {"attempt": 2}}
    lose(stored, "first", HANG_ONCE, SAY)
    lose(stored, "second", HANG_ONCE, fails)
    lose(stored, "third", HANG_ONCE, SAY)
    other = stored.folder / "other"
    other.mkdir()
    assert "all 3 lost runs: jackline resume --lost" in stored.type("list").err
    assert stored.type("resume", "--lost", cwd=other).err == (
        "no lost runs in this repository; --all-repos looks in every one\n"
    )
    ended = stored.type("resume", "--lost", "--all-repos", cwd=other)
    states = {row["id"]: row["state"] for row in stored.type("list", "--json").rows}
    assert states == {"first": "succeeded", "second": "failed", "third": "succeeded"}, ended
    first, second, third = (ended.out.index(f"run {name} (#") for name in ("first", "second", "third"))
    assert first < second < third
    assert ended.code == stored.type("list", "--json").rows[1]["exit_code"]
    assert "3 lost runs, 2 succeeded" in ended.err
    assert stored.type("resume", "--lost").code == 0


def test_lost_runs_are_named_or_all_of_them(place: Place) -> None:
    for words in (("resume", "r", "--lost"), ("resume", "--all-repos")):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (2, True), ended


def test_a_signal_stops_all_of_them(place: Place) -> None:
    lose(place, "first", HANG_ONCE, {"touch": place.path("again")}, {"hang": True})
    lose(place, "second", {"hang": True})
    resuming = place.start("resume", "--lost")
    place.wait_for("again")
    resuming.send_signal(signal.SIGINT)
    ended = place.end_of(resuming)
    rows = {row["id"]: (row["reason"], row["lost"]) for row in place.type("list", "--json").rows}
    assert (ended.code, rows) == (130, {"first": ("paused", False), "second": (None, True)}), ended


def test_who_loses_the_race_for_a_run_reports_how_it_ended(stored: Place) -> None:
    """The slower one has looked at the run, and is held before it can claim it."""
    slow = (
        "import sys, time, os; from jackline.cli.main import main; from jackline.engine import supervise\n"
        "look = supervise.find_dead_attempt\n"
        "def held(*args):\n"
        f"    open({stored.path('looked')!r}, 'w').close()\n"
        f"    while not os.path.exists({stored.path('go')!r}): time.sleep(0.01)\n"
        "    return look(*args)\n"
        "supervise.find_dead_attempt = held\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    fails = {"error": {"class": "authentication", "detail": "log in"}, "when": {"attempt": 2}}
    for run_id, steps, state in (("won", (SAY,), "succeeded"), ("failed", (fails,), "failed")):
        lose(stored, run_id, HANG_ONCE, *steps)
        slower = stored.python(slow, "resume", run_id, "--json")
        stored.wait_for("looked")
        faster = stored.type("resume", run_id, "--json")
        stored.let_go("go")
        ended = stored.end_of(slower)
        assert (ended.code, ended.json["state"], ended.json["attempt"]) == (faster.code, state, 2), ended
        (stored.folder / "looked").unlink()
        (stored.folder / "go").unlink()
    lose(stored, "busy", HANG_ONCE, {"touch": stored.path("second")}, {"wait_for": {"file": stored.path("end")}})
    slower = stored.python(slow, "resume", "busy")
    stored.wait_for("looked")
    working = stored.start("resume", "busy")
    stored.wait_for("second")
    stored.let_go("go")
    assert slower.stderr is not None
    while "another process has taken up run busy" not in slower.stderr.readline():
        pass
    stored.let_go("end")
    assert (stored.end_of(working).code, stored.end_of(slower).code) == (0, 0)
