"""Two runs do not work in one worktree at once, unless a person shares it."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from tests.cli.place import SAY, Place, is_one_line
from tests.conftest import SLOW_BACKENDS

SHARE = "--share-workspace"


@pytest.fixture(params=SLOW_BACKENDS)
def stored(request: pytest.FixtureRequest, place: Place) -> Place:
    """A place with each kind of database."""
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = str(request.getfixturevalue("postgres_database"))
    return place


def start_working(place: Place, run_id: str, *words: str, **more: Any) -> subprocess.Popen[str]:
    """Start a run that works until it is let go by the file `end-ID`."""
    steps = ({"touch": place.path(f"on-{run_id}")}, {"wait_for": {"file": place.path(f"end-{run_id}")}})
    running = place.start_playing(*steps, words=("--run-id", run_id, *words), **more)
    place.wait_for(f"on-{run_id}")
    return running


def list_states(place: Place) -> dict[str, str]:
    return {row["id"]: row["state"] for row in place.type("list", "--all-repos", "--json").rows}


def test_a_second_run_is_refused_and_not_created(stored: Place) -> None:
    assert stored.end_of(stored.execute(["git", "init", "-q"])).code == 0
    below = stored.repository / "below"
    below.mkdir()
    working = start_working(stored, "first")
    for folder in (stored.repository, below):
        refused = stored.play(SAY, words=("--run-id", "second"), cwd=folder)
        assert (refused.code, is_one_line(refused)) == (1, True), refused
        assert "run first (#1) works in" in refused.err
        assert SHARE in refused.err
    assert list_states(stored) == {"first": "running"}
    shared = stored.play(SAY, words=("--run-id", "shared", SHARE, "--json"))
    assert (shared.code, shared.json["state"]) == (0, "succeeded"), shared
    stored.let_go("end-first")
    assert stored.end_of(working).code == 0
    assert stored.play(SAY, words=("--run-id", "second")).code == 0


def test_other_worktrees_and_folders_are_free(place: Place) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (
        ("init", "-q"),
        (*identity, "commit", "-q", "--allow-empty", "-m", "a"),
        ("worktree", "add", "-q", "../b"),
    ):
        assert place.end_of(place.execute(["git", *words])).code == 0
    outside = place.folder / "outside" / "below"
    outside.mkdir(parents=True)
    working = start_working(place, "first")
    beside = start_working(place, "beside", cwd=outside.parent)
    assert place.play(SAY, cwd=place.folder / "b").code == 0
    assert place.play(SAY, cwd=outside).code == 0, "outside git a folder is only itself"
    for run_id, process in (("first", working), ("beside", beside)):
        place.let_go(f"end-{run_id}")
        assert place.end_of(process).code == 0


def test_a_queued_run_waits_and_a_parked_one_does_not_block(stored: Place) -> None:
    waits = {"hang": True, "when": {"attempt": 1}}
    parked = stored.start_playing({"touch": stored.path("on")}, waits, SAY, words=("--run-id", "parked"))
    stored.wait_for("on")
    parked.send_signal(signal.SIGINT)
    assert stored.end_of(parked).code == 130
    working = start_working(stored, "first")
    refused = stored.type("resume", "parked")
    assert (refused.code, "run first (#2) works in" in refused.err) == (1, True), refused
    assert stored.type("list", "--state", "waiting", "--json").rows[0]["attempt"] == 1
    assert stored.type("resume", "parked", SHARE).code == 0
    stored.let_go("end-first")
    assert stored.end_of(working).code == 0


def test_a_lost_run_does_not_block_and_can_be_cancelled_beside_a_live_one(stored: Place) -> None:
    lost = start_working(stored, "lost")
    lost.kill()
    lost.wait()
    working = start_working(stored, "first")
    assert stored.type("resume", "lost").code == 1
    cancelled = stored.type("cancel", "lost")
    assert (cancelled.code, list_states(stored)["lost"]) == (0, "cancelled"), cancelled
    stored.let_go("end-first")
    assert stored.end_of(working).code == 0


def test_a_run_that_was_started_to_share_is_resumed_so(place: Place) -> None:
    waits = {"hang": True, "when": {"attempt": 1}}
    working = start_working(place, "first")
    shared = place.start_playing({"touch": place.path("on")}, waits, SAY, words=("--run-id", "shared", SHARE))
    place.wait_for("on")
    shared.send_signal(signal.SIGINT)
    assert place.end_of(shared).code == 130
    assert place.type("resume", "shared").code == 0
    place.let_go("end-first")
    assert place.end_of(working).code == 0


def test_a_run_between_two_tries_keeps_its_worktree(place: Place) -> None:
    step = {"error": {"class": "connectivity", "detail": "no route"}}
    retrying = place.start_playing(step, words=("--run-id", "first", "--retry-seconds", "1000"))
    assert retrying.stderr is not None
    while place.type("show", "first", "--json").json.get("reason") != "retry":  # it may not exist yet
        assert retrying.poll() is None
    assert "run first (#1) works in" in place.play(SAY).err
    retrying.send_signal(signal.SIGTERM)
    assert place.end_of(retrying).code == 130
    assert place.play(SAY).code == 0


def test_of_many_that_start_at_once_one_works(stored: Place) -> None:
    """All have passed the check before the run is created; the claim decides."""
    program = (
        "import sys; from jackline.engine import workspace_guard; from jackline.cli.main import main\n"
        "check = workspace_guard.refuse_busy_workspace\n"
        "workspace_guard.refuse_busy_workspace = lambda *args, **more: check(*args, **more) if more else None\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    assert stored.play(SAY, words=("--run-id", "before")).code == 0  # the home exists
    script = stored.script({"wait_for": {"file": stored.path("end")}})
    words = ("run", "--agent", "scripted", "--script", script, "--run-id")
    processes = {f"r{number}": stored.python(program, *words, f"r{number}") for number in range(4)}
    while (
        list(list_states(stored).values()).count("queued") < 3
        or sum(one.poll() is not None for one in processes.values()) < 3
    ):
        assert sum(one.poll() is not None for one in processes.values()) <= 3
    stored.let_go("end")
    ended = {run_id: stored.end_of(process) for run_id, process in processes.items()}
    assert sorted(one.code for one in ended.values()) == [0, 1, 1, 1], ended
    states = list_states(stored)
    assert sorted(states[run_id] for run_id in processes) == ["queued", "queued", "queued", "succeeded"]
    for run_id, one in ended.items():
        assert (states[run_id] == "queued") == ("works in" in one.err)
