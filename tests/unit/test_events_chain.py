"""Events: one spelling, and a chain that no change survives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.events import GENESIS, Event, Fact, broken_at, canonical, place

UNHURRIED = settings(deadline=None)  # a busy machine is no reason to fail

ANY_TEXT = st.text(max_size=8)  # with \x1f, with quotes, with everything
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
FACTS = st.builds(Fact, kind=ANY_TEXT, data=st.dictionaries(ANY_TEXT, JSON, max_size=2))
ACTED = st.tuples(FACTS, st.integers(0, 10**13), ANY_TEXT)


def chained(acted: list[tuple[Fact, int, str]]) -> list[Event]:
    events: list[Event] = []
    for seq, (fact, at, actor) in enumerate(acted, 1):
        events.append(place(fact, "run", seq, at, actor, events[-1].hash if events else GENESIS))
    return events


CHAINS = st.lists(ACTED, min_size=2, max_size=6).map(chained)


@UNHURRIED
@given(JSON)
def test_canonical_json_has_one_spelling_and_loses_nothing(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


def test_canonical_json_is_narrow_sorted_and_readable() -> None:
    assert canonical({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'


def test_half_a_character_can_be_written() -> None:
    assert canonical("\ud800é").encode() == b'"\\ud800\\u00e9"'
    assert place(Fact("k", {"x": "\ud800"}), "run", 1, 1, "agent", GENESIS).hash


@UNHURRIED
@given(CHAINS)
def test_an_untouched_chain_holds(events: list[Event]) -> None:
    assert broken_at(events) is None
    assert broken_at(events[1:], events[0].hash, 1) is None


@UNHURRIED
@given(CHAINS, st.data())
def test_an_altered_event_is_found(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    column = data.draw(st.sampled_from(["stream", "seq", "at", "kind", "actor", "data", "hash"]))
    old = getattr(events[at], column)
    new = data.draw((st.integers() if isinstance(old, int) else ANY_TEXT).filter(lambda value: value != old))
    altered: dict[str, Any] = {column: new}
    changed = [*events[:at], events[at]._replace(**altered), *events[at + 1 :]]
    assert broken_at(changed) == at + 1


@pytest.mark.parametrize("mark", ["\x1f", ",", '"', '","'])
def test_nothing_moves_from_one_column_to_the_next_unseen(mark: str) -> None:
    event = place(Fact(f"kind{mark}x"), "run", 1, 1, "agent", GENESIS)
    assert broken_at([event._replace(kind="kind", actor=f"x{mark}agent")]) == 1


@UNHURRIED
@given(CHAINS, st.data())
def test_a_dropped_event_is_found(events: list[Event], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(events) - 1))
    left = events[:at] + events[at + 1 :]
    if at < len(events) - 1:
        assert broken_at(left) == at + 1
    else:  # a chain cannot miss its own tail; the head that left with the notice does
        assert left[-1].hash != events[-1].hash


@UNHURRIED
@given(CHAINS, st.data())
def test_events_in_another_order_are_found(events: list[Event], data: st.DataObject) -> None:
    turned = data.draw(st.permutations(events).filter(lambda order: order != events))
    first = next(at for at, pair in enumerate(zip(events, turned, strict=True), 1) if pair[0] != pair[1])
    assert broken_at(turned) == first


@UNHURRIED
@given(CHAINS, ACTED, st.data())
def test_an_inserted_event_is_found(events: list[Event], acted: tuple[Fact, int, str], data: st.DataObject) -> None:
    """Even one with a right hash for its place: the next one was chained to another."""
    at = data.draw(st.integers(0, len(events) - 1))
    fact, moment, actor = acted
    forged = place(fact, "run", at + 1, moment, actor, events[at - 1].hash if at else GENESIS)
    assert broken_at([*events[:at], forged, *events[at:]]) == at + 2


@UNHURRIED
@given(CHAINS)
def test_events_of_another_run_do_not_fit(events: list[Event]) -> None:
    assert broken_at([event._replace(stream="other") for event in events]) == 1


@UNHURRIED
@given(CHAINS, ACTED, st.data())
def test_an_event_that_was_replaced_with_its_hash_made_anew_is_found_at_the_next(
    events: list[Event], acted: tuple[Fact, int, str], data: st.DataObject
) -> None:
    """Who alters one event has to make every later one again, up to the head that left with the notice."""
    at = data.draw(st.integers(0, len(events) - 2))
    fact, moment, actor = acted
    forged = place(fact, "run", at + 1, moment, actor, events[at - 1].hash if at else GENESIS)
    if forged != events[at]:
        assert broken_at([*events[:at], forged, *events[at + 1 :]]) == at + 2
