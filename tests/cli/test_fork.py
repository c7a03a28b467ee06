"""A fork continues from a checkpoint of another run and does not repeat the effects before it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import EFFECT_RULE, SAY, Ended, Place, is_one_line
from tests.conftest import SLOW_BACKENDS

WAITS = 14
CANCELLED = 17
RULE = EFFECT_RULE.replace('key = ["to"]', 'key = ["to", "text"]')
ERROR = {"error": {"class": "agent_error", "detail": "no"}}


@pytest.fixture(params=SLOW_BACKENDS)
def either(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A place with each of the stores."""
    shared = request.param == "postgres"
    made = Place(tmp_path, {"JACKLINE_DATABASE": request.getfixturevalue("postgres_database")} if shared else {})
    made.repository.mkdir()
    yield made
    made.close()


def send(place: Place, text: str = "hello", **when: Any) -> dict[str, Any]:
    """A mail to ada that leaves a line outside of any database."""
    run = f"echo {text} >> {place.path('outbox')}; echo sent {text}"
    step: dict[str, Any] = {"call": {"tool": "send", "input": {"to": "ada", "text": text}, "run": run}}
    return {**step, "when": when} if when else step


def outbox(place: Place) -> list[str]:
    path = place.folder / "outbox"
    return path.read_text().splitlines() if path.exists() else []


def parent(place: Place, *steps: dict[str, Any], rule: str = RULE) -> Ended:
    return place.play(*steps, words=("do it", "--run-id", "p", "--policy", place.policy(rule), "--grace-seconds", "1"))


def fork(place: Place, *words: str, child: str = "c", of: str = "p") -> Ended:
    return place.type("fork", of, *words, "--run-id", child)


def show(place: Place, run: str = "c") -> dict[str, Any]:
    return place.type("show", run, "--json").json


def calls(place: Place, *names: str, run: str = "c") -> list[tuple[Any, ...]]:
    return [tuple(call[name] for name in names) for call in show(place, run)["calls"]]


def test_of_a_run_that_succeeded(either: Place) -> None:
    """The child gets the stored result, with its origin."""
    assert parent(either, send(either), SAY).code == 0
    ended = fork(either)
    assert ended.code == 0, ended
    assert "run c starts from step 2 of p" in ended.err
    shown = show(either)
    assert (shown["parent"], shown["forked_at"], shown["attempt"]) == ("p", 2, 1)
    ((original,),) = calls(either, "id", run="p")
    assert calls(either, "decision", "original") == [("stored", original)]
    assert "sent hello" in either.type("logs", "c", "--events", "--json").out
    assert outbox(either) == ["hello"]
    assert len(show(either, "p")["calls"]) == 1


def test_the_agent_gets_the_task_and_the_facts_of_the_parent(place: Place) -> None:
    assert parent(place, send(place), SAY).code == 0
    assert fork(place, "do it otherwise").code == 0
    prompt = show(place)["turns"][0]["prompt"]
    assert prompt.startswith("do it otherwise\n\nThis run continues from step 2 of run p. The host recorded")
    assert "Already done; do not repeat, in these or in other words:\n- send → mail:ada" in prompt
    assert fork(place, child="same").code == 0
    assert show(place, "same")["turns"][0]["prompt"].startswith("do it\n\nThis run continues")


def test_of_a_run_that_failed(place: Place) -> None:
    assert parent(place, send(place), {**ERROR, "when": {"attempt": 1}}).code == 1
    assert fork(place).code == 1  # it fails as its parent did, in its own first attempt
    assert place.type("resume", "c").code == 0
    assert outbox(place) == ["hello"]
    assert show(place, "p")["state"] == "failed"


def test_of_a_run_that_was_cancelled(place: Place) -> None:
    hang = {"hang": True}
    process = place.start_playing(
        send(place), {"touch": place.path("here")}, hang, words=("x", "--run-id", "p", "--policy", place.policy(RULE))
    )
    place.wait_for("here")
    refused = fork(place)
    assert (refused.code, is_one_line(refused)) == (2, True), refused
    assert "run p is running in the same workspace" in refused.err
    assert place.type("cancel", "p").code in {0, CANCELLED}
    assert place.end_of(process).code == CANCELLED
    child = place.start("fork", "p", "--run-id", "c")
    place.wait_for("home/runs/c/turns")
    assert place.type("cancel", "c").code in {0, CANCELLED}
    assert place.end_of(child).code == CANCELLED
    assert outbox(place) == ["hello"]


def test_of_a_run_that_waits_for_a_word_that_the_fork_asks_for_itself(place: Place) -> None:
    assert parent(place, send(place), SAY, rule=RULE.replace('"allow"', '"ask"')).code == WAITS
    ended = fork(place)
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    ((call,),) = calls(place, "id")
    assert place.type("answer", "c", call, "allow", "--resume").code == 0
    assert show(place, "p")["state"] == "waiting"
    assert outbox(place) == ["hello"]


def test_what_was_allowed_to_the_parent_was_not_allowed_to_the_child(place: Place) -> None:
    assert parent(place, send(place), SAY, rule=RULE.replace('"allow"', '"ask"')).code == WAITS
    ((call,),) = calls(place, "id", run="p")
    assert place.type("answer", "p", call, "allow").code == 0
    assert fork(place).code == WAITS
    assert "Approved since" not in show(place)["turns"][0]["prompt"]
    assert outbox(place) == []


def later(place: Place) -> None:
    """A parent that failed at step 2, with an effect after it."""
    assert parent(place, {**ERROR, "when": {"attempt": 1}}, send(place), SAY).code == 1
    assert place.type("resume", "p").code == 0
    assert outbox(place) == ["hello"]


def test_from_an_earlier_step_what_the_parent_did_after_it_is_asked_about(either: Place) -> None:
    later(either)
    assert fork(either, "--step", "2").code == 1
    assert show(either)["forked_at"] == 2
    assert "Already done" not in show(either)["turns"][0]["prompt"]
    ended = either.type("resume", "c")
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    ((call, reason),) = calls(either, "id", "reason")
    assert reason == "run p did this after the fork; repeating it needs approval"
    assert either.type("answer", "c", call, "allow", "--resume").code == 0
    assert outbox(either) == ["hello", "hello"]


def test_from_the_last_step_the_same_effect_is_done_already(place: Place) -> None:
    later(place)
    assert fork(place).code == 1
    assert place.type("resume", "c").code == 0
    assert calls(place, "decision") == [("stored",)]
    assert outbox(place) == ["hello"]


def test_other_content_for_a_target_that_the_parent_touched_is_asked_about(place: Place) -> None:
    steps = (send(place), {**ERROR, "when": {"attempt": 1}}, send(place, "dear-ada", attempt=2))
    assert parent(place, *steps).code == 1
    assert fork(place).code == 1
    assert place.type("resume", "c").code == WAITS
    touched, reason = calls(place, "target", "reason")[-1]
    assert touched == "mail:ada"
    assert "'mail:ada' was already touched by call" in reason
    assert outbox(place) == ["hello"]


def test_a_grandchild_knows_what_its_grandparent_did(either: Place) -> None:
    assert parent(either, send(either), SAY).code == 0
    assert fork(either).code == 0
    assert fork(either, child="g", of="c").code == 0
    assert calls(either, "decision", run="g") == [("stored",)]
    assert outbox(either) == ["hello"]
    prompt = show(either, "g")["turns"][0]["prompt"]
    assert prompt.index("step 2 of run p") < prompt.index("step 2 of run c")


def test_an_effect_of_unknown_outcome_in_the_parent_is_asked_about(place: Place) -> None:
    fails = {"call": {"tool": "send", "input": {"to": "ada", "text": "hello"}, "run": "false"}}
    assert parent(place, fails, SAY).code == WAITS
    assert fork(place).code == WAITS
    assert "may have done this already; repeating it needs approval" in calls(place, "reason")[0][0]


def test_rules_and_limits_come_from_the_parent_and_usage_starts_at_zero(place: Place) -> None:
    used = {"usage": {"input": 100, "output": 50, "usd": 0.5}}
    rule = RULE.replace('"allow"', '"deny"')
    words = ("x", "--run-id", "p", "--policy", place.policy(rule), "--max-usd", "0.75", "--proof", "true")
    assert place.play(used, send(place), SAY, words=words).code == 0
    place.policy(RULE)
    ended = fork(place)
    assert ended.code == 0, ended  # half a dollar each: the parent's half does not count
    assert calls(place, "decision") == [("deny",)]
    assert (show(place)["proof"], show(place)["life"]["spent"]["usd_micros"]) == ("proved", 500_000)


def test_a_step_without_a_checkpoint_names_those_that_have_one(place: Place) -> None:
    later(place)
    for step in ("1", "3", "99"):
        refused = fork(place, "--step", step)
        assert (refused.code, is_one_line(refused)) == (2, True), refused
        assert f"no checkpoint at step {step}: choose from 2, 4" in refused.err
    assert place.type("show", "c").code == 2


def test_contradictory_arguments(place: Place) -> None:
    assert parent(place, SAY).code == 0
    for words in (
        ("fork",),
        ("fork", "nobody"),
        ("fork", "p", "--step", "-1"),
        ("fork", "p", "--step", "two"),
        ("fork", "p", "--run-id", "../x"),
        ("fork", "p", "--run-id", "a b"),
    ):
        refused = place.type(*words)
        assert (refused.code, is_one_line(refused)) == (2, True), (words, refused)
    assert len(place.type("list", "--json").rows) == 1


def test_a_workspace_that_is_gone(place: Place) -> None:
    assert parent(place, SAY).code == 0
    shutil.rmtree(place.repository)
    refused = place.type("fork", "p", cwd=place.folder)
    assert (refused.code, is_one_line(refused), "is gone" in refused.err) == (2, True, True), refused


def test_a_chosen_id_makes_the_same_fork_once(either: Place) -> None:
    assert parent(either, send(either), SAY).code == 0
    assert fork(either).code == 0
    again = fork(either)
    assert (again.code, "run c" in again.out) == (0, True), again
    assert show(either)["attempt"] == 1
    for words in (("another prompt",), ("--step", "2")):
        other = fork(either, *words)
        assert (other.code, is_one_line(other)) == (2, True), other
    assert fork(either, child="p").code == 2
    assert outbox(either) == ["hello"]


def test_the_same_request_after_the_parent_has_continued(place: Place) -> None:
    assert parent(place, {**ERROR, "when": {"attempt": 1}}, SAY).code == 1
    assert fork(place).code == 1
    assert place.type("resume", "p").code == 0
    assert fork(place).code == 1  # the same fork, as it ended
    assert (show(place)["forked_at"], show(place)["attempt"]) == (2, 1)


def test_a_run_without_a_checkpoint_cannot_be_forked(place: Place) -> None:
    """Killed before its first step: there is no checkpoint to continue from."""
    words = ("run", "--script", place.script(SAY), "--run-id", "p")
    place.type(*words, environ={"JACKLINE_CRASH_AT": "run.created"})
    refused = fork(place)
    assert (refused.code, "has no checkpoint yet" in refused.err) == (2, True), refused
