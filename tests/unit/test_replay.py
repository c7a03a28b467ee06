"""The queue of calls that are to be made again: what takes their place, what waits, and when it is empty."""

from __future__ import annotations

from typing import Any

from jackline.domain.call_gate import Intent
from jackline.domain.records import Call
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.engine.replay import ReplayQueue
from jackline.policy.rules import Rule

LOCAL = Rule("tests", "Bash", CallClass.LOCAL, Replay.EXACT)
TASK = Rule("task", "Task", CallClass.LOCAL, Replay.RELAUNCH)


def cut_off(id: str, key: str, rule: Rule = LOCAL) -> Call:
    kinds = (rule.call_class, rule.replay, Decision.ALLOW)
    text = (rule.name, "socket", key, "", f'{{"command":"{id}"}}')
    return Call(id, "run", 1, 1, 2, 0, rule.tool, *kinds, *text, CallState.ABANDONED, prepared_at=1)


def wants(key: str, rule: Rule = LOCAL, **more: Any) -> Intent:
    return Intent("new", rule.tool, rule, key, "", "{}", "socket", **more)


def test_nothing_waits_where_nothing_was_cut_off() -> None:
    assert ReplayQueue(()).mark_intent(wants("k")) == wants("k")


def test_the_same_call_takes_the_place_of_the_one_that_was_cut_off() -> None:
    queue = ReplayQueue([cut_off("one", "k")])
    intent = queue.mark_intent(wants("k"))
    assert (intent.replaces, intent.waits_for) == ("one", "")
    queue.record_decision("again", intent, Decision.ALLOW)
    assert queue.record_end("again")
    assert len(queue) == 0
    assert queue.mark_intent(wants("other")).waits_for == ""


def test_any_other_call_waits_and_is_told_for_what() -> None:
    queue = ReplayQueue([cut_off("one", "k"), cut_off("two", "l")])
    waits = queue.mark_intent(wants("other")).waits_for
    assert "one" in waits
    assert "two" in waits


def test_one_cut_off_call_is_made_again_once() -> None:
    queue = ReplayQueue([cut_off("one", "k")])
    queue.record_decision("again", queue.mark_intent(wants("k")), Decision.ALLOW)
    second = queue.mark_intent(wants("k"))
    assert (second.replaces, bool(second.waits_for)) == (None, True)


def test_two_of_the_same_are_made_again_twice() -> None:
    queue = ReplayQueue([cut_off("one", "k"), cut_off("two", "k")])
    for number, original in enumerate(("one", "two")):
        intent = queue.mark_intent(wants("k"))
        assert intent.replaces == original
        queue.record_decision(f"again-{number}", intent, Decision.ALLOW)
    assert not queue.record_end("again-0")
    assert queue.record_end("again-1")


def test_a_task_in_other_words_is_the_same_task_under_the_same_key() -> None:
    queue = ReplayQueue([cut_off("one", "k", TASK)])
    intent = queue.mark_intent(wants("reworded", TASK))
    assert (intent.replaces, intent.key) == ("one", "k")


def test_what_a_relaunched_task_calls_does_not_wait() -> None:
    queue = ReplayQueue([cut_off("one", "k", TASK)])
    queue.record_decision("task", queue.mark_intent(wants("k", TASK)), Decision.ALLOW)
    assert queue.mark_intent(wants("read", parent_id="task")).waits_for == ""
    assert queue.mark_intent(wants("read")).waits_for


def test_an_asked_call_is_still_waited_for_and_a_denied_one_is_not() -> None:
    queue = ReplayQueue([cut_off("one", "k")])
    queue.record_decision("asked", queue.mark_intent(wants("k")), Decision.ASK)
    assert len(queue) == 1
    queue.record_decision("denied", queue.mark_intent(wants("k")), Decision.DENY)
    assert len(queue) == 0


def test_who_does_not_listen_is_stuck() -> None:
    queue = ReplayQueue([cut_off("one", "k")])
    for _ in range(20):
        assert not queue.is_stuck
        queue.record_decision("x", queue.mark_intent(wants("other")), Decision.DENY)
    assert queue.is_stuck


def test_a_stored_result_is_no_refusal() -> None:
    queue = ReplayQueue([cut_off("one", "k")])
    for _ in range(30):
        queue.record_decision("x", queue.mark_intent(wants("other")), Decision.STORED)
    assert not queue.is_stuck


def test_a_finished_task_that_is_asked_for_again_is_not_the_one_that_was_cut_off() -> None:
    queue = ReplayQueue([cut_off("two", "k2", TASK)], finished={"k1"})
    assert queue.mark_intent(wants("k1", TASK)).replaces is None
    assert queue.mark_intent(wants("reworded", TASK)).replaces == "two"
