"""Questions at a terminal: about each call that needs a person; in interactive mode also before a resume."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SECONDS, SEND, SEND_FAILS, Place
from tests.cli.test_terminal import Terminal

WAITS = 14
ASK_RULE = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
EOF = b"\x04"
QUESTION = r"Allow it\? \[y/n/a, Enter: later, \?: help\] "
GO_ON = r"Continue\? \[Y/n\]"


def run_words(place: Place, *steps: dict[str, Any], mode: str = "job", rule: str = ASK_RULE) -> list[str]:
    words = ["run", "--script", place.script(*steps), "--policy", place.policy(rule)]
    return [*words, "--run-id", "r", "--mode", mode]


def say(terminal: Terminal, pattern: str, typed: bytes) -> None:
    """Wait for the question, then type; what was seen before does not count for the next one."""
    found = terminal.until(pattern)
    terminal.seen = terminal.seen[found.end() :]
    os.write(terminal.ours, typed)


def code_of(terminal: Terminal) -> int:
    terminal.end()
    code: int = terminal.process.returncode
    return code


def states(place: Place) -> list[tuple[str, str]]:
    made: list[dict[str, Any]] = place.type("show", "r", "--json").json["calls"]
    return [(call["state"], call["answer"]) for call in made]


def state(place: Place) -> str:
    return str(place.type("show", "r", "--json").json["state"])


@pytest.mark.parametrize(
    ("typed", "answer", "after"),
    [
        (b"y\n", "allow", "done"),
        (b"ALLOW\n", "allow", "done"),
        (b"a\n", "always", "done"),
        (b"No \n", "deny", "denied"),
    ],
)
def test_a_call_that_asks_is_answered_at_the_terminal_and_the_run_goes_on(
    place: Place, typed: bytes, answer: str, after: str
) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY))
    terminal.until(r"rule 'send' requires approval before send touches 'mail:ada'\r\n  send")
    say(terminal, QUESTION, typed)
    assert code_of(terminal) == 0
    assert states(place) == [("denied", answer), (after, "")]


def test_an_effect_in_doubt_is_answered_at_the_terminal(place: Place) -> None:
    terminal = Terminal(place, *run_words(place, SEND_FAILS, SAY, rule=EFFECT_RULE))
    say(terminal, r"Did it happen\? \[happened/did-not/retry/skip, Enter: later, \?: help\] ", b"happened\n")
    assert code_of(terminal) == 0
    assert states(place) == [("done", "happened")]  # the work was done: there is no second turn


@pytest.mark.parametrize("typed", [b"maybe\n", b"\xff\xfe\n", b"ja\n", b"happened\n"])
def test_an_invalid_answer_is_asked_again(place: Place, typed: bytes) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY))
    say(terminal, QUESTION, typed)
    terminal.until("is not a valid answer; use y, n, a")
    say(terminal, QUESTION, b"y\n")
    assert code_of(terminal) == 0
    assert states(place)[-1] == ("done", "")


@pytest.mark.parametrize("typed", [b"\n", EOF, b"\x03"])
def test_an_empty_line_the_end_of_input_or_ctrl_c_leaves_it_open(place: Place, typed: bytes) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY))
    say(terminal, QUESTION, typed)
    terminal.until(r"jackline answer r \S+ allow\s")
    assert code_of(terminal) == WAITS
    assert states(place) == [("denied", "")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_question(place: Place, number: signal.Signals) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY))
    terminal.until(QUESTION)
    terminal.process.send_signal(number)
    assert code_of(terminal) == WAITS
    assert state(place) == "waiting"


def test_a_terminal_that_goes_away_leaves_it_open(place: Place) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY))
    terminal.until(QUESTION)
    os.close(terminal.ours)
    terminal.process.wait(SECONDS)
    assert states(place) == [("denied", "")]
    assert "Traceback" not in (place.home / "jackline.log").read_text()


def failed(place: Place) -> None:
    """An interactive run that failed, and would succeed now."""
    step = {"error": {"class": "agent_error", "detail": "no"}, "when": {"attempt": 1}}
    assert place.type(*run_words(place, step, SAY, mode="interactive")).code == 1


@pytest.mark.parametrize("typed", [b"y\n", b"\n", b"YES\n"])
def test_a_resume_is_agreed_to(place: Place, typed: bytes) -> None:
    failed(place)
    terminal = Terminal(place, "resume", "r")
    say(terminal, f"run r has failed. {GO_ON}", typed)
    assert code_of(terminal) == 0
    assert state(place) == "succeeded"


@pytest.mark.parametrize("typed", [b"n\n", b"no\n", EOF, b"\x03"])
def test_a_resume_is_not_agreed_to(place: Place, typed: bytes) -> None:
    failed(place)
    terminal = Terminal(place, "resume", "r")
    say(terminal, GO_ON, typed)
    assert code_of(terminal) == WAITS
    assert state(place) == "failed"


def crashed(place: Place, when: dict[str, Any]) -> None:
    """An interactive run whose agent died in the middle of an edit."""
    kills = "[ $JACKLINE_ATTEMPT = 1 ] && kill -9 $PPID; true"
    step = {"call": {"tool": "edit", "input": {"file_path": "a"}, "run": kills}, "when": when}
    ended = place.type(*run_words(place, step, SAY, mode="interactive"), "--retries", "0", "--replay", "insist")
    assert (ended.code, states(place)) == (1, [("abandoned", "")]), ended


def test_a_resume_shows_how_many_calls_are_replayed(place: Place) -> None:
    crashed(place, {"attempt_from": 1})
    terminal = Terminal(place, "resume", "r")
    say(terminal, f"1 call will be repeated first. {GO_ON}", b"y\n")
    assert code_of(terminal) == 0
    assert states(place) == [("abandoned", ""), ("done", "")]


def test_a_call_that_the_agent_does_not_repeat_is_asked_about(place: Place) -> None:
    crashed(place, {"attempt": 1})
    terminal = Terminal(place, "resume", "r", "--yes")
    say(terminal, r"Skip it\? \[skip, Enter: later, ", b"skip\n")
    assert code_of(terminal) == 0
    assert states(place) == [("abandoned", "skip")]


def test_a_resume_asks_to_go_on_and_then_about_the_call(place: Place) -> None:
    assert place.type(*run_words(place, SEND, SAY, mode="interactive")).code == WAITS
    terminal = Terminal(place, "resume", "r")
    say(terminal, GO_ON, b"y\n")
    say(terminal, QUESTION, b"y\n")
    assert code_of(terminal) == 0
    assert states(place) == [("denied", "allow"), ("done", "")]


def test_without_a_terminal_a_resume_is_not_asked_about(place: Place) -> None:
    failed(place)
    assert place.type("resume", "r").code == 0
    assert state(place) == "succeeded"


def test_a_run_that_began_without_a_terminal_is_asked_about_at_one(place: Place) -> None:
    assert place.type(*run_words(place, SEND, SAY)).code == WAITS
    terminal = Terminal(place, "resume", "r")
    say(terminal, QUESTION, b"y\n")
    assert "Continue?" not in terminal.seen
    assert code_of(terminal) == 0


@pytest.mark.parametrize("words", [("--json",), ("--on-ask", "stop")])
def test_a_flag_prevents_the_question(place: Place, words: tuple[str, ...]) -> None:
    terminal = Terminal(place, *run_words(place, SEND, SAY), *words)
    assert "Allow it?" not in terminal.end()
    assert terminal.process.returncode == WAITS
    assert state(place) == "waiting"
