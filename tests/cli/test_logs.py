"""`logs` is a transcript: who said what, each command with its result and the first lines of its output."""

from __future__ import annotations

import re
import signal

import pytest

from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_terminal import Terminal

HOSTILE = "\x1b[2Jx\u202e\x9b1m"
LOOK = {
    "call": {
        "tool": "Bash",
        "input": {"command": "pytest -q", "cwd": "web"},
        "run": "seq 7; printf '\\033[2Jend'; exit 3",
    }
}
PUSH = {"call": {"tool": "push", "input": {"to": "main"}, "run": "true"}}
RULE = '[[rule]]\ntool = "{}"\nclass = "effect"\ndecision = "{}"\n'
RULES = RULE.format("push", "ask") + RULE.format("drop", "deny")
DROP = {"call": {"tool": "drop", "input": {"table": "users"}, "run": "true"}}


@pytest.fixture(scope="module")
def two_turns(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A run that asks in its first turn and ends in its second; the tests only read it."""
    place = Place(tmp_path_factory.mktemp("turns"))
    (place.repository / "web").mkdir(parents=True)
    steps = (
        {"say": f"I look.\n{HOSTILE}"},
        LOOK,
        {"edit": {"path": "a.txt", "append": "x"}},
        DROP,
        PUSH,
        {"say": "done"},
    )
    words = (f"mend it {HOSTILE}", "--run-id", "r", "--policy", place.policy(RULES), "--proof", "echo proved")
    assert place.play(*steps, words=words).code == 14
    (asked,) = [one for one in place.type("show", "--json").json["calls"] if one["decision"] == "ask"]
    ended = place.type("answer", "r", asked["id"], "allow", "--resume")
    assert ended.code == 0, ended
    return place


def test_the_transcript(two_turns: Place) -> None:
    out = two_turns.type("logs").out
    assert all(line.isprintable() for line in out.splitlines())
    lines = [re.sub(r" [\d.]+m?s$", "", line) for line in out.splitlines()]
    assert lines[0].startswith("you: mend it")
    first = lines.index("-- turn 1, scripted")
    assert lines[first + 1] == "scripted: I look."
    look = lines.index("$ pytest -q (in web/)   local ✗ exit 3")
    assert lines[look + 1 : look + 6] == ["    1", "    2", "    3", "    4", "    5"]
    assert lines[look + 6].startswith("    … 3 more lines: jackline show r --call ")
    assert "edit a.txt   local ✓" in lines
    assert any(line.startswith("gate: denied: drop table=users") for line in lines)
    assert any(line.startswith("gate: needs approval: push to=main") for line in lines)
    assert any(line.startswith("run: waiting: approval") for line in lines)
    assert "you: allow: push to=main" in lines
    assert not [line for line in lines if "run.queued" in line or line == "run: "]
    second = lines.index("-- turn 2, scripted")
    assert "scripted: done" in lines[second:]
    host = lines.index("host: $ echo proved   ✓")
    assert lines[host + 1 :] == ["    proved", "run: succeeded"]


def test_one_turn_only(two_turns: Place) -> None:
    first, second = (two_turns.type("logs", "r", "--turn", number).out for number in "12")
    assert first.startswith("-- turn 1")
    assert "needs approval" in first
    assert "turn 2" not in first
    assert second.startswith("-- turn 2")
    raw = two_turns.type("logs", "--raw").out
    assert raw == "".join(two_turns.type("logs", "--raw", "--turn", number).out for number in "12")
    missing = two_turns.type("logs", "--turn", "9")
    assert (missing.code, is_one_line(missing), "has no turn 9" in missing.err) == (2, True, True)
    mixed = two_turns.type("logs", "--turn", "1", "--events")
    assert (mixed.code, is_one_line(mixed)) == (2, True)


def test_entries_as_json(two_turns: Place) -> None:
    entries = two_turns.type("logs", "r", "--json").rows
    exported = (two_turns.home / "runs" / "r" / "transcript.jsonl").read_text().splitlines()
    assert len(entries) == len(exported)  # one transcript
    assert {entry.get("what") for entry in entries} >= {"$ pytest -q (in web/)", "push to=main", None}


def test_lines_fit_the_terminal(two_turns: Place) -> None:
    seen = Terminal(two_turns, "logs", "r", "--no-color", COLUMNS="60").end().splitlines()
    assert any(line.startswith("$ pytest -q (in web/)   local ✗ exit 3") for line in seen)
    assert all("\x1b" not in line for line in seen)


def test_a_call_that_a_crash_cut_off_is_shown(place: Place) -> None:
    call = {
        "call": {"tool": "Bash", "input": {"command": "sleep 99"}, "run": f"touch {place.path('on')}; exec sleep 99"}
    }
    running = place.start_playing({**call, "when": {"attempt": 1}}, SAY, words=("--run-id", "r"))
    place.wait_for("on")
    following = place.start("logs", "-f")
    running.send_signal(signal.SIGKILL)
    place.end_of(running)
    followed = place.end_of(following)  # it ends: the run is lost
    assert followed.code == 0
    place.type("resume", "r")
    lines = place.type("logs").out.splitlines()
    cut_off = next(number for number, line in enumerate(lines) if "$ sleep 99" in line)
    assert cut_off < lines.index("-- turn 2, scripted"), lines
