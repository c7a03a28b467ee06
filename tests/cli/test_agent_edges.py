"""Edge cases of a turn, with an agent that is defined in TOML: nothing is lost and nothing hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.place import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.place import Place

FUTURE = 4_000_000_000  # seconds
END = {"type": "end"}
LIMIT = {"type": "limit", "detail": "later", "resets_at": FUTURE}


def says(*lines: Mapping[str, object]) -> str:
    """A program that takes its prompt and prints these lines."""
    return "\n".join(["cat > told-$0.txt", *(f"echo '{json.dumps(line)}'" for line in lines)])


def describe(place: Place, name: str, program: str, *, sessions: bool = False, resumed: str = "") -> str:
    """One more agent in the user's settings; with `sessions` it lets us choose the id and can be resumed."""
    words = ["sh", "-c", program, "new", *(["{session}"] if sessions else [])]
    table = f"\n[agents.{name}]\nformat = 'lines'\ncommand = {json.dumps(words)}\n"
    if sessions or resumed:
        table += f"resume = {json.dumps(['sh', '-c', resumed or program, 'again', '{session}'])}\n"
    folder = place.folder / ".config" / "jackline"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "config.toml").open("a") as file:
        file.write(table)
    return name


def shown(place: Place, run: str = "r") -> dict[str, object]:
    record: dict[str, object] = place.type("show", run, "--json").json
    return record


# --- a supervisor that dies around the start of a turn -------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--session", "begun-by-hand")])
@pytest.mark.parametrize("point", ["turn.spawning", "turn.spawned"])
def test_a_session_that_never_got_the_task_gets_it(place: Place, point: str, words: tuple[str, ...]) -> None:
    agent = describe(place, "talker", says(END), sessions=True)
    run = ("run", "DO THE TASK", "--agent", agent, "--run-id", "r", *words)
    assert place.type(*run, environ={"JACKLINE_CRASH_AT": point}).code < 0
    assert place.type("resume", "r").code == 0
    told = "".join(path.read_text() for path in place.repository.glob("told-*.txt"))
    assert "DO THE TASK" in told


def test_usage_of_a_turn_without_a_recorded_end_is_charged(place: Place) -> None:
    used = {"type": "usage", "input": 1000, "output": 10, "usd": 1.5}
    # The session is stored at once, together with the output before it.
    program = says(used, {"type": "session", "id": "s"}) + "\nexec sleep 60"
    resumed = says({"type": "usage", "input": 5, "output": 1, "usd": 0}, END)
    agent = describe(place, "burner", program, resumed=resumed)
    process = place.start("run", "x", "--agent", agent, "--run-id", "r", "--json")
    until = time.monotonic() + SECONDS
    while not place.home.exists() or not shown(place).get("sessions"):
        assert time.monotonic() < until, "the session was never written down"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ended = place.type("resume", "r", "--json")
    assert (ended.code, ended.json["tokens"], ended.json["cost_usd"]) == (0, 1016, 1.5)


# --- sessions ------------------------------------------------------------------------------------------------


def test_an_agent_that_names_a_session_of_another_run_goes_on_without_owning_it(place: Place) -> None:
    agent = describe(place, "counter", says({"type": "session", "id": "sess-1"}, LIMIT), resumed=says(END))
    assert place.type("run", "one", "--agent", agent).code == 10
    second = place.type("run", "two", "--agent", agent, "--run-id", "r", "--json")
    assert (second.code, second.json["state"]) == (10, "waiting")
    assert place.type("resume", "r", "--json").json["state"] == "waiting", "in a session of its own"


def test_a_session_of_an_active_run_is_refused(place: Place) -> None:
    agent = describe(place, "talker", says(LIMIT), sessions=True)
    other = describe(place, "other", says(LIMIT))
    assert place.type("run", "x", "--agent", agent, "--fallback", other, "--run-id", "r").code == 10
    session = dict(shown(place)["sessions"])["talker"]  # type: ignore[call-overload]
    assert place.type("run", "y", "--agent", agent, "--session", session).code == 2


# --- what is gone, broken or absurd --------------------------------------------------------------------------


def test_an_agent_that_is_no_longer_described_fails_the_run_and_can_come_back(place: Place) -> None:
    agent = describe(place, "shortlived", says(LIMIT))
    assert place.type("run", "x", "--agent", agent, "--run-id", "r").code == 10
    config = place.folder / ".config" / "jackline" / "config.toml"
    text = config.read_text()
    config.write_text("")
    gone = place.type("resume", "r", "--json")
    assert (gone.code, gone.json["failure"]) == (13, "unavailable")
    config.write_text(text)
    assert place.type("resume", "r").code == 10


@pytest.mark.parametrize(
    "lines",
    [
        [{"type": "usage", "usd": 1e14}],
        [
            {"type": "call.started", "call": "c", "tool": "t", "input": {}},
            {"type": "call.finished", "call": "c", "ok": False, "exit_code": 10**23},
        ],
    ],
)
def test_an_absurd_number_does_not_break_the_run(place: Place, lines: list[Mapping[str, object]]) -> None:
    agent = describe(place, "absurd", says(*lines, END))
    ended = place.type("run", "x", "--agent", agent, "--max-usd", "0", "--json")
    assert (ended.code, ended.json["state"]) == (0, "succeeded")


def test_a_turn_that_cannot_be_started_is_not_left_open(place: Place) -> None:
    workspace = place.folder / "workspace"
    workspace.mkdir()
    first = describe(place, "remover", f"rm -rf {workspace}\n" + says(LIMIT).replace("cat > told-$0.txt", "true"))
    second = describe(place, "second", says(END))
    words = ("--agent", first, "--fallback", second, "--workspace", str(workspace), "--run-id", "r")
    assert place.type("run", "x", *words).code != 0
    turns = shown(place)["turns"]
    assert isinstance(turns, list)
    assert [turn["failure"] for turn in turns] == ["limit", "unavailable"]
    assert all(turn["ended_at"] for turn in turns)


# --- git that is slow or broken ------------------------------------------------------------------------------


def bad_git(place: Place, body: str) -> None:
    """A git of the test's own before the real one."""
    folder = place.folder / "before"
    folder.mkdir()
    program = folder / "git"
    program.write_text(f'#!/bin/sh\n{body}\nPATH=${{PATH#*:}} exec git "$@"\n')
    program.chmod(0o755)
    place.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def test_no_clock_runs_while_git_is_asked_what_was_changed(place: Place) -> None:
    bad_git(place, 'case "$*" in *walk-reflogs*) sleep 2;; esac')
    agent = describe(place, "quick", says(END))
    assert place.type("run", "x", "--agent", agent, "--idle-seconds", "1").code == 0


def test_if_git_fails_no_missing_commit_is_reported(place: Place) -> None:
    subprocess.run(["git", "init", "-q", str(place.repository)], check=True)
    bad_git(place, 'case "$*" in *walk-reflogs*) exit 128;; esac')
    agent = describe(place, "quick", says(END))
    task = place.task("commits", "---\nrequires_commit: true\n---\nDo it.\n")
    ended = place.type("run", "--task", task, "--agent", agent, "--json")
    assert ended.json["failure"] == "no_commit"
    assert "git could not tell" in ended.json["detail"]


# --- rules that nobody can hold an observed agent to ---------------------------------------------------------


@pytest.mark.parametrize("decision", ["deny", "ask"])
def test_a_call_that_should_have_been_held_stops_the_run_and_says_so(place: Place, decision: str) -> None:
    policy = place.policy(f'[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "{decision}"\n')
    call = {"type": "call.started", "call": "1", "tool": "send", "input": {"to": "ada"}}
    agent = describe(place, "sender", says(call, {"type": "call.finished", "call": "1", "ok": True}, END))
    ended = place.type("run", "x", "--agent", agent, "--policy", policy, "--json")
    assert (ended.code, ended.json["failure"]) == (18, "ungated")
    expected = (
        "the call was not gated" if decision == "deny" else "was made and succeeded, without the approval of rule"
    )
    assert expected in ended.json["detail"]
    run_id = ended.json["id"]
    shown = place.type("show", run_id).out
    assert "stopped: ungated" in shown
    assert (f"jackline resume {run_id} --allow send" in shown) == (decision == "ask")
    assert len(place.type("show", run_id, "--json").json["receipts"]) == 1


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ({"type": "call.finished", "call": "1", "ok": False}, "it is unknown whether it took effect"),
        ({"type": "message", "text": "bye"}, "was started and did not end"),
    ],
)
def test_an_ungated_effect_that_did_not_succeed_says_so(place: Place, end: dict[str, Any], text: str) -> None:
    policy = place.policy('[[rule]]\ntool = "send"\nclass = "effect"\n')
    call = {"type": "call.started", "call": "1", "tool": "send", "input": {"to": "ada"}}
    agent = describe(place, "sender", says(call, end, END))
    ended = place.type("run", "x", "--agent", agent, "--policy", policy, "--json")
    assert (ended.code, ended.json["failure"], text in ended.json["detail"]) == (18, "ungated", True), ended
    assert [one["state"] for one in place.type("show", ended.json["id"], "--json").json["calls"]] == ["in_doubt"]


def test_a_run_whose_ungated_effect_is_accepted_continues(place: Place) -> None:
    policy = place.policy('[[rule]]\nname = "mail"\ntool = "send"\nclass = "effect"\n')
    call = {"type": "call.started", "call": "1", "tool": "send", "input": {"to": "ada"}}
    agent = describe(place, "sender", says(call, {"type": "call.finished", "call": "1", "ok": True}, END))
    assert place.type("run", "x", "--agent", agent, "--policy", policy, "--run-id", "r").code == 18
    assert place.type("resume", "r", "--allow", "mail").code == 0


@pytest.mark.parametrize(("decision", "agreed"), [("deny", "--ungated"), ("ask", "--ungated"), ("ask", "--allow=mail")])
def test_what_a_person_agreed_to_beforehand_is_written_down_and_the_run_goes_on(
    place: Place, decision: str, agreed: str
) -> None:
    policy = place.policy(f'[[rule]]\nname = "mail"\ntool = "send"\nclass = "effect"\ndecision = "{decision}"\n')
    call = {"type": "call.started", "call": "1", "tool": "send", "input": {"to": "ada"}}
    agent = describe(place, "sender", says(call, {"type": "call.finished", "call": "1", "ok": True}, END))
    ended = place.type("run", "x", "--agent", agent, "--policy", policy, agreed, "--json")
    assert (ended.code, ended.json["state"]) == (0, "succeeded"), ended
    (receipt,) = place.type("receipts", ended.json["id"], "--json").json["effects"]
    assert receipt["status"] == "ungated"
