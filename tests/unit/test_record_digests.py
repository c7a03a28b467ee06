"""Digests of rows: no covered column can be changed unseen, and the digest of a row never changes between versions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.store import ledger_events, record_digests, rows
from jackline.store.record_digests import CALL_COLUMNS, RECEIPT_COLUMNS, RECORDS
from jackline.store.run_verifier import read_call_event
from jackline.store.stream_check import RowDigests, UnreadableEvent
from tests.support.view_records import AT, call

PREPARED = call(state=CallState.PREPARED, external='{"git.commit":"abc"}')
DONE = PREPARED._replace(
    state=CallState.DONE, output="sent", exit_code=0, finished_at=AT + 1, duration_ms=7, reason="because"
)
PROOF = Receipt("call-1", "run-1", DONE.key, DONE.target, DONE.rule, "sent", "m-1", "agent", AT + 1)
WORDS = {"call_class": CallClass, "replay": Replay, "decision": Decision, "state": CallState}


def event(fact: Fact, at: int = AT) -> Event:
    return place(fact, "run-1", 1, at, "agent", "")


def read(*facts: Fact) -> RowDigests:
    digests = RowDigests()
    for fact in facts:
        read_call_event(digests, event(fact))
    return digests


def settled(one: Call, before: Call = PREPARED) -> RowDigests:
    """The digests after the intent and the outcome."""
    outcome = ledger_events.build_settled(one, "agent", "m-1", receipt=PROOF)
    return read(ledger_events.build_intended("call.prepared", before), outcome)


def is_altered(digests: RowDigests, one: Call) -> bool:
    return digests.is_altered("call call-1", rows.call_values(one), CALL_COLUMNS)


INTENDED = read(ledger_events.build_intended("call.prepared", PREPARED))


def test_a_call_as_it_was_written_is_not_altered() -> None:
    assert not is_altered(settled(DONE), DONE)
    assert not is_altered(INTENDED, PREPARED)


@pytest.mark.parametrize("name", Call._fields)
@pytest.mark.parametrize(("digests", "row"), [(settled(DONE), DONE), (INTENDED, PREPARED)])
def test_no_column_can_be_changed_unseen(name: str, digests: RowDigests, row: Call) -> None:
    value = getattr(row, name)
    if name in WORDS:
        others: list[Any] = [word for word in WORDS[name] if word is not value]
    elif isinstance(value, int):
        others = [value + 1, 0 if value else 5]
    else:
        others = [f"{value or ''}x"] if name not in {"exit_code", "duration_ms", "finished_at"} else [3]
    for other in others:
        values = {**rows.call_values(row), name: other}
        assert digests.is_altered("call call-1", values, CALL_COLUMNS), (name, other)


@settings(deadline=None, max_examples=200)
@given(output=st.text(st.characters(codec="utf-8")), other=st.text(st.characters(codec="utf-8")))
def test_an_output_that_differs_is_seen_whatever_it_is(output: str, other: str) -> None:
    row = DONE._replace(output=output)
    assert is_altered(settled(row), row._replace(output=other)) == (output != other)


def test_a_receipt_is_covered_by_the_event_that_wrote_it() -> None:
    digests = settled(DONE)
    assert not digests.is_altered("receipt call-1", PROOF._asdict(), RECEIPT_COLUMNS)
    for name in Receipt._fields:
        assert digests.is_altered("receipt call-1", {**PROOF._asdict(), name: "x"}, RECEIPT_COLUMNS), name
    refused = read(ledger_events.build_settled(DONE, "agent", receipt=False))
    assert "receipt call-1" not in refused.newest


def test_one_answer_covers_every_call_that_asked_the_same() -> None:
    first = call("call-1", state=CallState.DENIED, decision=Decision.ASK, key="k")
    second = first._replace(id="call-2")
    asked = [one._replace(answer="allow", finished_at=AT + 9) for one in (first, second)]
    answer = ledger_events.build_answered(first, asked, "allow", "person")
    digests = read(*(ledger_events.build_intended("call.asked", one) for one in (first, second)), answer)
    for row in asked:
        name = f"call {row.id}"
        assert not digests.is_altered(name, rows.call_values(row), CALL_COLUMNS)
        assert digests.is_altered(name, rows.call_values(row._replace(answer="deny")), CALL_COLUMNS)
        assert digests.is_altered(name, rows.call_values(row._replace(answer="", finished_at=None)), CALL_COLUMNS)


def test_a_row_of_an_older_version_is_not_covered_and_never_altered() -> None:
    old = Fact(
        "call.prepared", {"call": "call-1", "tool": "mail", "class": "effect", "input": "digest", "row": "digest"}
    )
    digests = read(old)
    assert not is_altered(digests, PREPARED._replace(target="moved"))
    assert (digests.newest, digests.uncovered) == ({"call call-1": ""}, 1)
    # An older worker may also write after a newer one, in a database that they share.
    later = read(
        ledger_events.build_intended("call.prepared", PREPARED), Fact("call.done", {"call": "call-1", "output": "d"})
    )
    assert not is_altered(later, DONE)


@pytest.mark.parametrize(
    "data",
    ["", "[]", "{}", '{"call":[]}', '{"call":"a","tool":"t"}', '{"call":"a"}', '{"call":"a","records":[]}',
     '{"call":"a","records":{"call a":1}}'],
)  # fmt: skip
def test_an_event_that_jackline_did_not_write_is_unreadable(data: str) -> None:
    with pytest.raises(UnreadableEvent):
        read_call_event(RowDigests(), Event("run-1", 4, AT, "call.prepared", "agent", data, "h"))


@pytest.mark.parametrize(
    ("record", "names"),
    [("call", CALL_COLUMNS), ("receipt", RECEIPT_COLUMNS), *record_digests.STEP_COLUMNS.items()],
)
def test_every_column_of_a_record_is_covered(record: str, names: tuple[str, ...]) -> None:
    later = {"usd_estimated", "iteration", "review_round", "seat"}  # notes about covered columns of a turn
    assert set(names) == set(rows.columns(record)) - (later if record == "turn" else set())


def test_digests_are_the_same_in_every_version() -> None:
    """Databases hold them: if one of these changes, every run that was ever written looks altered."""
    values = {name: place for place, name in enumerate(CALL_COLUMNS)}
    assert record_digests.digest_row(values, CALL_COLUMNS) == record_digests.digest_text(
        "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29]"
    )
    assert CALL_COLUMNS[:3] == ("id", "run_id", "attempt")
    assert CALL_COLUMNS[-3:] == ("duration_ms", "external", "reason_code")
    fact = ledger_events.build_intended("call.prepared", PREPARED)
    assert fact.data[RECORDS] == {"call call-1": "36604f5cd32f38404efb6e4ce6d7834e84212de4e4195072ccbb1281bd6343d1"}
