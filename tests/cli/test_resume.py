"""`jackline resume` with a message, new limits and other options; and what is refused."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, Place, is_one_line
from tests.cli.test_hints import commands

ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
SPENDS = {"usage": {"input": 10, "output": 5, "usd": 0.6}}
FAIL = {"crash": "SIGKILL"}


def prompts(place: Place) -> list[str]:
    return [turn["prompt"] for turn in place.type("show", "r", "--json").json["turns"]]


def events(place: Place, kind: str) -> list[dict[str, Any]]:
    return [row["data"] for row in place.type("logs", "r", "--events", "--json").rows if row["kind"] == kind]


def fail(place: Place, *more: str) -> None:
    """A run that failed after its first words."""
    ended = place.play(SAY, FAIL, SAY, words=("do it", "--run-id", "r", "--retries", "0", *more))
    assert ended.code == 1, ended


def spend(place: Place) -> str:
    """A run that has spent its dollar; returns what was printed."""
    ended = place.play(SPENDS, SPENDS, FAIL, SAY, words=("do it", "--run-id", "r", "--max-usd", "1", "--retries", "0"))
    assert ended.code == 15, ended
    assert "waiting: budget" in ended.out
    return ended.out


@pytest.mark.parametrize(
    ("words", "stdin"),
    [(("do it\ndifferently",), None), (("--message", "do it\ndifferently"), None), (("-m", "-"), "do it\ndifferently")],
)
def test_the_next_prompt_has_the_message(place: Place, words: tuple[str, ...], stdin: str | None) -> None:
    fail(place)
    place.type("resume", "r", *words, stdin=stdin)
    first, second = prompts(place)
    assert first == "do it"
    assert "A person sent this message." in second
    assert "\ndo it\ndifferently\n" in second
    place.type("resume", "r")
    assert "\ndo it\ndifferently\n" in prompts(place)[-1]  # that turn was killed before the model answered
    assert [one["text"] for one in events(place, "run.message")] == ["do it\ndifferently"]
    assert place.type("verify", "r").code == 0


def test_a_message_to_a_run_that_is_over_names_the_way_out(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    refused = place.type("resume", "r", "again")
    assert (refused.code, is_one_line(refused), "`jackline fork r PROMPT`" in refused.err) == (2, True, True), refused


def test_a_run_without_budget_is_continued_by_the_command_that_it_names(place: Place) -> None:
    out = spend(place)
    (command,) = [one for one in commands(out) if one.startswith("jackline resume")]
    assert command == "jackline resume r --max-usd 2"
    again = place.type("resume", "r")
    assert (again.code, command in again.out) == (15, True)
    assert place.type("show", "r", "--json").json["attempt"] == 1  # nothing was tried in vain
    page = (place.home / "runs" / "r" / "RESUME.md").read_text()
    assert f"{command} --home" in page
    continued = place.type(*shlex.split(command)[1:])
    assert "waiting: budget" not in continued.out
    assert len(prompts(place)) == 2
    (changed,) = events(place, "run.changed")
    assert (changed["name"], changed["old"], changed["new"]) == ("max_usd", 1, 2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--max-usd", "1.2"), "1.2 is spent already"),
        (("--max-tokens", "30"), "30 is spent already"),
        (("--max-usd", "much"), "max_usd"),
        (("--allow", "nothing-like-it"), "there is no rule"),
        (("--allow", " "), "--allow is empty"),
        (("--model", ""), "--model is empty"),
        (("--model=-x",), "not start with '-'"),
        (("--effort", "high"), "no reasoning effort"),
        (("",), "the message is empty"),
        (("-m", "one", "two"), "two messages"),
    ],
)
def test_a_value_that_cannot_be_used_is_one_line_and_changes_nothing(
    place: Place, words: tuple[str, ...], says: str
) -> None:
    spend(place)
    before = place.type("show", "r", "--json").json
    refused = place.type("resume", "r", *words)
    assert (refused.code, is_one_line(refused), says in refused.err) == (2, True, True), refused
    assert place.type("show", "r", "--json").json == before


def test_a_run_that_is_worked_on_is_refused(place: Place) -> None:
    os.mkfifo(place.path("go"))
    process = place.start_playing(
        {"call": {"tool": "wait", "input": {}, "run": f"touch {place.path('here')}; read x < {place.path('go')}"}},
        words=("--run-id", "r"),
    )
    place.wait_for("here")
    refused = place.type("resume", "r", "hello", "--max-usd", "50")
    assert (refused.code, is_one_line(refused)) == (1, True), refused
    with open(place.path("go"), "w") as go:
        go.write("\n")
    assert place.end_of(process).code == 0
    assert events(place, "run.message") == events(place, "run.changed") == []


def test_the_changes_apply_to_the_next_turn(place: Place) -> None:
    fail(place)
    flags = ("--timeout-seconds", "77", "--idle-seconds", "66", "--max-steps", "99", "--model", "big")
    place.type("resume", "r", *flags, "words after flags")
    assert "\nwords after flags\n" in prompts(place)[-1]
    spec = place.type("show", "r", "--json").json["spec"]
    assert (spec["turn_timeout_ms"], spec["idle_timeout_ms"], spec["limits"]["steps"]) == (77_000, 66_000, 99)
    assert spec["manners"]["scripted"]["model"] == "big"
    assert [one["name"] for one in events(place, "run.changed")] == [
        "max_steps", "timeout_seconds", "idle_seconds", "model",
    ]  # fmt: skip


def test_an_allowed_rule_lets_the_waiting_call_through(place: Place) -> None:
    send = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
    policy = ASK_RULE.replace("[[rule]]", '[[rule]]\nname = "mails"')
    assert place.play(send, words=("--policy", place.policy(policy), "--run-id", "r")).code == 14
    ended = place.type("resume", "r", "--allow", "mails", "--json")
    assert (ended.code, ended.json["state"]) == (0, "succeeded"), ended


def test_an_agent_cannot_change_its_own_run(place: Place) -> None:
    fail(place)
    refused = place.type("resume", "r", "--max-usd", "100", environ={"JACKLINE_RUN": "r"})
    assert (refused.code, is_one_line(refused), "refused inside a run" in refused.err) == (2, True, True)
    assert json.loads(place.type("show", "r", "--json").out)["spec"]["limits"]["usd_micros"] == 20_000_000
