"""`jackline answer`: calls in doubt and calls that need approval, answered with the commands in the output."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND_FAILS, Place, is_one_line

ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')


def calls(place: Place) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = place.type("show", "r", "--json").json["calls"]
    return made


def in_doubt(place: Place) -> str:
    ended = place.play(SEND_FAILS, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r"))
    assert ended.code == 14
    assert "mail:ada" in ended.out
    command = re.search(r"jackline answer r (\S+) happened\n", ended.out)
    assert command, ended.out
    return command[1]


def test_happened_gives_a_receipt_and_the_run_goes_on(place: Place) -> None:
    call = in_doubt(place)
    answered = place.type("answer", "r", call, "happened")
    assert answered.code == 0
    next_command = re.search(r"continue: jackline (resume r)", answered.out)
    assert next_command, answered.out
    assert place.type(*shlex.split(next_command[1])).code == 0
    shown = place.type("show", "r", "--json").json
    assert [(one["call_id"], one["origin"]) for one in shown["receipts"]] == [(call, "person")]


def test_resuming_without_an_answer_parks_again_and_shows_the_command(place: Place) -> None:
    call = in_doubt(place)
    ended = place.type("resume", "r")
    assert (ended.code, f"jackline answer r {call} " in ended.out) == (14, True)


def test_skip_by_the_end_of_the_id_and_resume_at_once(place: Place) -> None:
    call = in_doubt(place)
    ended = place.type("answer", "r", call[-8:], "skip", "--resume", "--json")
    assert (ended.code, ended.json["state"]) == (0, "succeeded")
    assert next((one["state"], one["answer"]) for one in calls(place)) == ("abandoned", "skip")


@pytest.mark.parametrize(("verdict", "states"), [("allow", ["denied", "done"]), ("deny", ["denied", "denied"])])
def test_a_call_that_asks_waits_for_a_word(place: Place, verdict: str, states: list[str]) -> None:
    step = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    ended = place.play(step, words=("--policy", place.policy(ASK_RULE), "--run-id", "r"))
    assert (ended.code, "waiting: approval" in ended.out) == (14, True)
    command = re.search(r"jackline answer r (\S+) allow\n", ended.out)
    assert command, ended.out
    assert place.type("answer", "r", command[1], verdict, "--json").json["run"]["state"] == "queued"
    assert place.type("resume", "r").code == 0
    assert [one["state"] for one in calls(place)] == states


def test_answers_that_do_not_fit(place: Place) -> None:
    call = in_doubt(place)
    for words in (("r", call, "maybe"), ("r", call, "allow"), ("r", "nothing", "skip"), ("x", call, "skip")):
        refused = place.type("answer", *words)
        assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert place.type("answer", "r", call, "did-not").code == 0
    assert place.type("answer", "r", call, "did-not").code == 2


def test_an_agent_cannot_agree_to_its_own_call(place: Place) -> None:
    look = {"call": {"tool": "look", "input": {}, "run": f"printenv JACKLINE_MARK > {place.path('mark')}"}}
    ask = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    ended = place.play(look, ask, words=("--policy", place.policy(ASK_RULE), "--run-id", "r"))
    command = re.search(r"jackline answer r (\S+) allow\n", ended.out)
    assert command, ended.out
    inside = {"JACKLINE_MARK": (place.folder / "mark").read_text().strip()}
    refused = place.type("answer", "r", command[1], "allow", environ=inside)
    assert (refused.code, is_one_line(refused), "refused inside a run" in refused.err) == (2, True, True)
    assert place.type("answer", "r", command[1], "allow").code == 0


def test_the_calls_of_a_run_that_has_ended_are_not_answered(place: Place) -> None:
    words = ("--policy", place.policy(EFFECT_RULE), "--run-id", "r")
    assert place.play(SEND_FAILS, SAY, words=words).code == 14
    (call,) = place.type("show", "r", "--json").json["calls"]
    assert place.type("cancel", "r").code == 0
    refused = place.type("answer", "r", call["id"], "happened")
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert "run r was cancelled: its calls can no longer be answered" in refused.err
    (after,) = place.type("show", "r", "--json").json["calls"]
    assert (after["state"], after["answer"]) == ("in_doubt", "")
