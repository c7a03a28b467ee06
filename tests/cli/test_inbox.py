"""`jackline inbox` in a pipe and as JSON: everything that needs a person, with commands that can be pasted."""

from __future__ import annotations

import json
import shlex
import signal
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND_FAILS, Place, is_one_line
from tests.cli.test_hints import commands, paste

ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
SPENDS = {"usage": {"input": 10, "output": 5, "usd": 1.2}}
HANG = {"hang": True}


def ask(place: Place, run_id: str, *to: str, words: tuple[str, ...] = ()) -> None:
    steps = [{"call": {"tool": "send", "input": {"to": one, "text": "x" * 300}, "run": "true"}} for one in to]
    ended = place.play(*steps, words=("--policy", place.policy(ASK_RULE), "--run-id", run_id, *words))
    assert ended.code == 14, ended


def entries(place: Place) -> list[dict[str, Any]]:
    return place.type("inbox", "--json").rows


def test_an_empty_inbox(place: Place) -> None:
    assert place.type("inbox").out == "nothing needs you\n"
    assert place.play(SAY).code == 0
    assert (place.type("inbox").code, place.type("inbox", "--json").out) == (0, "")


def test_everything_that_needs_a_person_is_listed_oldest_first(place: Place) -> None:
    ask(place, "asks", "ada")
    assert place.play(SEND_FAILS, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "doubts")).code == 14
    assert place.play(SPENDS, SPENDS, SAY, words=("--run-id", "spends", "--max-usd", "1")).code == 15
    asked = place.type("work", "enqueue", "--id", "mail-1", "--kind", "mail", "--question", "which one?\nthe red one?")
    assert asked.code == 0
    process = place.start_playing({"touch": place.path("here")}, HANG, words=("--run-id", "lost"))
    place.wait_for("here")
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = entries(place)
    assert [(one["kind"], one["run"] or one["item"]) for one in found] == [
        ("approval", "asks"), ("in_doubt", "doubts"), ("budget", "spends"), ("question", "mail-1"), ("lost", "lost"),
    ]  # fmt: skip
    assert "x" * 300 in found[0]["text"]  # whole, never cut
    assert found[3]["text"] == "which one?\nthe red one?"
    plain = place.type("inbox")
    assert plain.code == 0
    assert "x" * 300 in plain.out
    pasted = [paste(command, place.folder) for command in commands(plain.out)]
    assert all(len(given) == 1 for given in pasted)
    assert {command for one in found for command in one["commands"]} == set(commands(plain.out))
    assert place.type("cancel", "lost").code == 0
    assert "lost" not in {one["run"] for one in entries(place)}


def test_the_inbox_knows_all_repositories(place: Place) -> None:
    ask(place, "here", "ada")
    other = place.folder / "other"
    other.mkdir()
    assert [one["run"] for one in place.type("inbox", "--json", cwd=other).rows] == ["here"]


def test_what_was_answered_and_not_continued_is_listed(place: Place) -> None:
    ask(place, "r", "ada")
    assert place.type("answer", "r", "allow").code == 0
    (entry,) = entries(place)
    assert (entry["kind"], entry["commands"]) == ("answered", ["jackline resume r"])


def test_an_agent_that_is_not_logged_in_is_listed(place: Place) -> None:
    failed = {"error": {"class": "authentication", "detail": "please run /login"}}
    assert place.play(failed, words=("--run-id", "r", "--retries", "0")).code == 1
    (entry,) = entries(place)
    assert (entry["kind"], entry["run"], entry["agent"]) == ("log_in", "r", "scripted")


def test_no_control_character_reaches_the_terminal(place: Place) -> None:
    hostile = "\x1b[2J\u202etxt\x9b1m"
    assert place.type("work", "enqueue", "--id", "mail-1", "--kind", "mail", "--question", f"{hostile}?").code == 0
    plain = place.type("inbox").out
    assert not any(ord(one) < 32 and one != "\n" for one in plain)
    assert not any(one in plain for one in "\x9b\u202e")


# answer without ids


def test_an_answer_needs_no_call_if_one_is_open(place: Place) -> None:
    ask(place, "r", "ada")
    answered = place.type("answer", "r", "allow", "--json")
    assert (answered.code, answered.json["run"]["state"]) == (0, "queued")


def test_an_answer_needs_no_run_if_one_call_waits_here(place: Place) -> None:
    ask(place, "r", "ada")
    other = place.folder / "other"
    other.mkdir()
    nothing = place.type("answer", "allow", cwd=other)
    assert (nothing.code, is_one_line(nothing), "jackline inbox" in nothing.err) == (2, True, True)
    assert place.type("answer", "deny", "--json").json["call"]["answer"] == "deny"


def test_an_ambiguous_answer_lists_the_commands(place: Place) -> None:
    ask(place, "r", "ada")
    ask(place, "s", "ada")
    found: list[str] = []
    for words in (("answer", "allow"), ("answer", "r", "skip")):
        refused = place.type(*words)
        assert refused.code == 2
        found = [one for one in commands(refused.err) if one.startswith("jackline answer")]
        assert found
        assert all(len(paste(command, place.folder)) == 1 for command in found)
    assert place.type(*shlex.split(found[0])[1:]).code == 0
    assert place.type("answer", "allow").code == 0  # now one call waits here


@pytest.mark.parametrize("words", [("r", "maybe"), ("maybe",), ("r", "zzz", "allow")])
def test_a_word_that_is_no_answer_is_one_line(place: Place, words: tuple[str, ...]) -> None:
    ask(place, "r", "ada")
    refused = place.type("answer", *words)
    assert (refused.code, is_one_line(refused)) == (2, True), refused


def test_a_question_of_a_run_is_answered_with_its_text(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    payload = json.dumps({"question": "which?", "run": "r"})
    words = (
        "work",
        "enqueue",
        "--id",
        "question-1",
        "--kind",
        "question",
        "--payload",
        payload,
        "--question",
        "which?",
    )
    assert place.type(*words).code == 0
    (entry,) = entries(place)
    assert (entry["kind"], entry["run"], entry["text"]) == ("question", "r", "which?")
    assert place.type("answer", "r", "the red one").code == 0
    assert place.type("work", "list", "--json").rows[0]["answer"] == "the red one"
    assert entries(place) == []


@pytest.mark.postgres
def test_the_same_on_postgres(place: Place, postgres_database: str) -> None:
    place.environ["JACKLINE_DATABASE"] = postgres_database
    ask(place, "r", "ada")
    assert place.play(SPENDS, SPENDS, SAY, words=("--run-id", "spends", "--max-usd", "1")).code == 15
    assert [(one["kind"], one["run"]) for one in entries(place)] == [("approval", "r"), ("budget", "spends")]
    assert place.type("answer", "allow", "--resume").code == 0
    assert place.type("resume", "spends", "go on", "--max-usd", "9").code == 0
    assert entries(place) == []
    assert place.type("db", "check").code == 0
