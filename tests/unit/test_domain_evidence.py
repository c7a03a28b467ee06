"""What the events say of the ledger: no column of a call can be changed unseen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.events import Event, Fact, place
from jackline.domain.evidence import Told, Unreadable, altered, answers_of, listen, proof_of, state_told
from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision, Replay, RunState
from jackline.store import facts
from tests.support.view_records import AT, call

PREPARED = call(state=CallState.PREPARED, external='{"git.commit":"abc"}')
DONE = PREPARED._replace(
    state=CallState.DONE, output="sent", exit_code=0, finished_at=AT + 1, duration_ms=7, reason="because"
)
WORDS = {"call_class": CallClass, "replay": Replay, "decision": Decision, "state": CallState}


def event(fact: Fact, at: int = AT) -> Event:
    return place(fact, "run-1", 1, at, "agent", "")


def heard(*events: Event) -> dict[str, Told]:
    told: dict[str, Told] = {}
    for one in events:
        listen(told, one)
    return told


def story(one: Call, before: Call = PREPARED) -> Told:
    """What is known after the intent and the outcome."""
    outcome = facts.settled(one, "m-1", "agent", receipt=True)
    return heard(event(facts.intended("call.prepared", before)), event(outcome, AT + 1))[one.id]


def test_a_call_as_it_was_written_is_not_altered() -> None:
    assert altered(story(DONE), DONE, {}) == ""
    intent = heard(event(facts.intended("call.prepared", PREPARED)))["call-1"]
    assert altered(intent, PREPARED, {}) == ""


@pytest.mark.parametrize("name", Call._fields)
@pytest.mark.parametrize(
    ("told", "row"),
    [(story(DONE), DONE), (heard(event(facts.intended("call.prepared", PREPARED)))["call-1"], PREPARED)],
)
def test_no_column_can_be_changed_unseen(name: str, told: Told, row: Call) -> None:
    value = getattr(row, name)
    if name in WORDS:
        others: list[Any] = [word for word in WORDS[name] if word is not value]
    elif isinstance(value, int):
        others = [value + 1, 0 if value else 5]
    else:
        others = [f"{value or ''}x"] if name not in {"exit_code", "duration_ms", "finished_at"} else [3]
    for other in others:
        changed = row._replace(**{name: other})
        assert altered(told, changed, {}), (name, other)


@settings(deadline=None, max_examples=200)
@given(output=st.text(st.characters(codec="utf-8")), other=st.text(st.characters(codec="utf-8")))
def test_an_output_that_differs_is_seen_whatever_it_is(output: str, other: str) -> None:
    row = DONE._replace(output=output)
    assert bool(altered(story(row), row._replace(output=other), {})) == (output != other)


def test_the_receipt_follows_from_the_events() -> None:
    proof = Receipt("call-1", "run-1", DONE.key, DONE.target, DONE.rule, "sent", "m-1", "agent", AT + 1)
    assert proof_of(story(DONE), DONE) == proof
    refused = heard(event(facts.settled(DONE, "", "agent", receipt=False)))["call-1"]
    assert proof_of(refused, DONE) is None


def test_one_word_answers_everybody_who_asked_the_same() -> None:
    first = call("a", state=CallState.DENIED, decision=Decision.ASK, key="k")
    second = first._replace(id="b")
    answer = event(Fact("call.answered", {"call": "a", "answer": "allow"}), AT + 9)
    told = heard(*(event(facts.intended("call.asked", one)) for one in (first, second)), answer)
    rows = [one._replace(answer="allow", finished_at=AT + 9) for one in (first, second)]
    answers = answers_of(told, rows)
    assert answers == {"k": ("allow", AT + 9)}
    assert [altered(told[one.id], one, answers) for one in rows] == ["", ""]
    assert altered(told["b"], second, answers) == ""  # it asked after the answer was given
    assert altered(told["a"], first, answers) == "answer"
    assert altered(told["b"], rows[1]._replace(answer="deny"), answers) == "answer"


def test_an_answer_to_a_call_from_before_the_archive_says_nothing_of_the_rest() -> None:
    told = heard(event(Fact("call.answered", {"call": "a", "answer": "deny"}), AT + 9))
    row = call("a", state=CallState.DENIED, decision=Decision.ASK, reason="why", answer="deny", finished_at=AT + 9)
    assert altered(told["a"], row, answers_of(told, [row])) == ""


def test_events_of_an_older_jackline_cover_what_they_say() -> None:
    old = Fact("call.prepared", {"call": "call-1", "tool": "mail", "class": "effect", "input": story(DONE).input})
    told = heard(event(old))["call-1"]
    assert (told.row, altered(told, PREPARED._replace(target="moved", external=""), {})) == (None, "")
    assert altered(told, PREPARED._replace(input="x", external=""), {}) == "input"


@pytest.mark.parametrize("data", ["", "[]", "{}", '{"call":[]}', '{"call":"a","tool":"t"}', '{"call":"a"}'])
def test_an_event_that_jackline_did_not_write_is_told(data: str) -> None:
    with pytest.raises(Unreadable):
        listen({}, Event("run-1", 4, AT, "call.prepared", "agent", data, "h"))


@pytest.mark.parametrize(
    ("kind", "state"),
    [("run.created", RunState.QUEUED), ("run.claimed", RunState.RUNNING), ("run.failed", RunState.FAILED), ("x", None)],
)
def test_some_events_say_how_the_run_stands(kind: str, state: RunState | None) -> None:
    assert state_told(event(Fact(kind))) is state
