"""Each documented exit code, from a real process; `--json` has the same number."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND_FAILS, Place

CALL = {"call": {"tool": "look", "run": "true"}}
CASES: dict[str, tuple[int, list[dict[str, Any]], tuple[str, ...], dict[str, Any]]] = {
    "succeeded": (0, [SAY], (), {"state": "succeeded", "proof": "unverified"}),
    "proved": (0, [SAY], ("--proof", "true"), {"state": "succeeded", "proof": "proved"}),
    "failed": (1, [{"exit": 3}], (), {"state": "failed", "failure": "agent_error", "detail": "exit code 3"}),
    "garbage": (0, [{"garbage": {"kind": "binary", "bytes": 100_000}}], (), {"state": "succeeded"}),
    "limit": (10, [{"limit": {"resets_in": 3600}}], (), {"state": "waiting", "reason": "limit"}),
    "timeout": (11, [{"hang": True}], ("--timeout-seconds", "1"), {"state": "failed", "failure": "timeout"}),
    "idle": (11, [{"hang": True}], ("--idle-seconds", "1"), {"state": "failed", "failure": "idle"}),
    "connectivity": (
        12, [{"error": {"class": "connectivity", "detail": "no route"}}], ("--retries", "0"),
        {"state": "failed", "failure": "connectivity", "detail": "no route"},
    ),
    "budget": (15, [CALL, CALL], ("--max-calls", "1"), {"state": "waiting", "reason": "budget"}),
    "refuted": (
        16, [SAY], ("--proof", "false", "--max-iterations", "1"),
        {"state": "failed", "failure": "proof", "proof": "refuted"},
    ),
    "stuck": (16, [SAY], ("--proof", "false"), {"state": "failed", "failure": "no_progress", "proof": "refuted"}),
    "ungated": (
        18, [{"call": {"tool": "sneak", "ungated": True, "run": "true"}}, {"hang": True}], (),
        {"state": "failed", "failure": "ungated"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_end_of_a_run_is_the_exit_code(place: Place, name: str) -> None:
    code, steps, words, facts = CASES[name]
    ended = place.play(*steps, words=(*words, "--json"))
    assert ended.code == code, ended
    told = ended.json
    assert told["exit_code"] == code
    assert {key: told[key] for key in facts} == facts
    assert ended.err == ""


def test_usage_is_2(place: Place) -> None:
    assert place.type("run", "--agent", "scripted").code == 2


def test_no_agent_is_13(place: Place) -> None:
    ended = place.play(SAY, words=("--json",), environ={"JACKLINE_SCRIPTED_BINARY": "/nonexistent"})
    assert (ended.code, ended.json["failure"]) == (13, "unavailable")


def test_an_effect_in_doubt_is_14(place: Place) -> None:
    ended = place.play(SEND_FAILS, words=("--policy", place.policy(EFFECT_RULE), "--json"))
    assert (ended.code, ended.json["state"], ended.json["reason"]) == (14, "waiting", "in_doubt")


def test_a_transient_failure_is_retried_here(place: Place) -> None:
    steps = ({"error": {"class": "connectivity"}, "when": {"attempt": 1}}, SAY)
    ended = place.play(*steps, words=("--retry-seconds", "0", "--json"))
    assert (ended.code, ended.json["state"], ended.json["attempt"]) == (0, "succeeded", 2)


def test_cancelled_by_another_process_is_17(place: Place) -> None:
    running = place.start_playing({"touch": place.path("on")}, {"hang": True}, words=("--run-id", "r", "--json"))
    place.wait_for("on")
    cancelled = place.type("cancel", "r", "--json")
    assert (cancelled.code, cancelled.json["state"]) == (0, "cancelled")
    ended = place.end_of(running)
    assert (ended.code, ended.json["state"], ended.json["exit_code"]) == (17, "cancelled", 17)


def test_interrupted_is_130(place: Place) -> None:
    running = place.start_playing({"touch": place.path("on")}, {"hang": True}, words=("--json",))
    place.wait_for("on")
    running.send_signal(signal.SIGINT)
    ended = place.end_of(running)
    assert (ended.code, ended.json["state"], ended.json["reason"]) == (130, "waiting", "paused")


def test_a_failed_log_in_says_what_to_do(place: Place) -> None:
    ended = place.play({"error": {"class": "authentication", "detail": "who are you?"}})
    assert (ended.code, "log in with scripted itself, or set its key" in ended.out) == (1, True), ended
