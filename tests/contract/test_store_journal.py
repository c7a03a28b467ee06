"""The journal: events beside those of runs, one timeline over every stream, and nothing of it ever altered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Event, Fact, broken_at
from jackline.errors import NoItem
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import NewItem
from jackline.store.journal import build_timeline
from jackline.store.models import JOURNAL, RunChange, Settlement, TimelineQuery
from jackline.store.store import Store
from tests.support.stores import AT, begun, by_hand, intent, made

INDEX = "events_timeline"


def noted(store: Store, kind: str = "note.made", at: int = AT, actor: str = "ada", **data: Any) -> Event:
    return store.journal.append(Fact(kind, data), at, actor)


def kinds(store: Store, **query: Any) -> list[str]:
    return [event.kind for event in store.journal.list_timeline(TimelineQuery(**query))]


def add_item(store: Store, item_id: str = "item-1") -> None:
    WorkQueue(store).enqueue(NewItem(item_id, "mail"), AT, "ada")


# appending


def test_an_event_has_its_place_in_the_journal(store: Store) -> None:
    first, second = noted(store, "note.made", text="one"), noted(store, "note.kept", AT - 5)
    assert (first.stream, first.seq, first.at, first.kind, first.actor) == (JOURNAL, 1, AT, "note.made", "ada")
    assert json.loads(first.data) == {"text": "one"}
    assert store.records.list_events(JOURNAL) == [first, second]
    assert broken_at([first, second]) is None
    assert by_hand(store, "SELECT name, event_seq, chain_head FROM streams") == [(JOURNAL, 2, second.hash)]


def test_an_event_of_an_item_goes_on_its_own_chain(store: Store) -> None:
    add_item(store)
    events = [store.journal.append(Fact("note.made", {"no": number}), AT + 9, "ada", "item-1") for number in range(3)]
    assert [(event.stream, event.seq) for event in events] == [("work:item-1", number) for number in (2, 3, 4)]
    assert broken_at(store.records.list_events("work:item-1")) is None
    row = by_hand(store, "SELECT event_seq, chain_head, updated_at FROM work_items")
    assert row == [(4, events[-1].hash, AT)]  # nobody has worked on it
    assert store.records.list_events(JOURNAL) == []


def test_an_event_of_an_item_that_is_not_there_is_refused_and_nothing_is_written(store: Store) -> None:
    with pytest.raises(NoItem, match="no work item has the id 'item-1'"):
        store.journal.append(Fact("note.made"), AT, "ada", "item-1")
    assert store.journal.list_timeline(TimelineQuery()) == []
    assert by_hand(store, "SELECT * FROM streams") == []


def test_what_could_be_a_secret_is_not_written(store: Store) -> None:
    event = noted(store, actor="ghp_" + "a1B2" * 9, password="correct horse", list=["ghp_" + "a1B2" * 9])
    assert "horse" not in event.data
    assert "a1B2" not in event.data + event.actor
    assert broken_at([event]) is None
    assert store.records.list_events(JOURNAL) == [event]


def test_text_that_no_database_likes_is_stored(store: Store) -> None:
    event = noted(store, actor="a\x00b", text="a\x00b\ud800 é 🙂")
    assert store.records.list_events(JOURNAL) == [event]
    assert json.loads(event.data) == {"text": "a\x00b\ud800 é 🙂"}
    assert event.actor == "a\ufffdb"
    assert broken_at([event]) is None


def test_any_number_of_threads_append_without_a_gap(opened: Callable[..., Store]) -> None:
    """Also the very first one: nobody may make the stream a second time."""
    stores = [opened() for _ in range(4)]
    start = threading.Barrier(4)

    def add(store: Store) -> None:
        start.wait()
        for _ in range(10):
            noted(store)

    threads = [threading.Thread(target=add, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = stores[0].records.list_events(JOURNAL)
    assert [event.seq for event in events] == list(range(1, 41))
    assert broken_at(events) is None
    assert stores[0].verify.check_all() == []


# the timeline


def test_the_timeline_is_ordered_by_time_over_every_stream(store: Store) -> None:
    made(store, "run-1", at=AT + 2)
    add_item(store)
    store.journal.append(Fact("item.noted"), AT + 1, "ada", "item-1")
    noted(store, "third", AT + 3)
    noted(store, "zeroth", AT)
    assert kinds(store) == ["third", "run.created", "item.noted", "work.created", "zeroth"]
    assert kinds(store, newest_first=False) == ["zeroth", "work.created", "item.noted", "run.created", "third"]
    assert kinds(store, newest_first=False, since=AT + 2) == ["run.created", "third"]
    assert kinds(store, limit=2) == ["third", "run.created"]
    assert kinds(store, limit=0) == kinds(store, limit=-1) == []


def test_the_talk_and_the_tool_calls_of_a_run_stay_out_of_the_timeline(store: Store) -> None:
    lease = begun(store)
    facts = (Fact("agent.said", {"text": "hello"}), Fact("turn.started"))
    store.leases.write_change(lease, RunChange(AT + 2, facts, actor="engine"))
    store.ledger.admit(lease, intent(), decide_call, (1, 1), AT + 3)
    store.ledger.settle(lease, Settlement("call-1", "succeed", AT + 4, "sent", 0, "message-1"))
    assert kinds(store, newest_first=False) == ["run.created", "run.claimed", "turn.started"]
    assert kinds(store, newest_first=False, stream="run-1") == ["run.created", "run.claimed", "turn.started"]
    whole = [event.kind for event in store.records.list_events("run-1")]
    assert {"agent.said", "call.prepared", "call.done"} < set(whole)
    assert kinds(store, newest_first=False, stream="run-1", whole=True) == whole
    assert kinds(store, newest_first=False, whole=True) == ["run.created", "run.claimed", "turn.started"]
    assert kinds(store, stream="run-1", whole=True, text="HELLO") == ["agent.said"]


def test_kinds_that_only_look_like_them_stay_in(store: Store) -> None:
    for kind in ("agent-x", "agents.made", "agent", "callback.x", "call"):
        noted(store, kind)
    assert kinds(store, newest_first=False) == ["agent-x", "agents.made", "agent", "callback.x", "call"]


def test_pages_meet_without_gap_and_without_overlap(store: Store) -> None:
    """Also where many events have the same time."""
    add_item(store)
    for number in range(12):
        at = AT + number // 5
        if number % 3:
            noted(store, f"kind.{number}", at)
        else:
            store.journal.append(Fact(f"kind.{number}"), at, "ada", "item-1")
    whole = store.journal.list_timeline(TimelineQuery(newest_first=False))
    assert len(whole) == 13
    assert _pages(store, "after") == whole
    assert _pages(store, "before") == whole[::-1]


def _pages(store: Store, cursor: str) -> list[Event]:
    found: list[Event] = []
    place: dict[str, Any] = {"newest_first": cursor == "before"}
    while page := store.journal.list_timeline(TimelineQuery(**place, limit=5)):
        found += page
        place[cursor] = (page[-1].at, page[-1].stream, page[-1].seq)
    return found


def test_one_stream_is_in_the_order_of_its_sequence(store: Store) -> None:
    """Its times may go back: the clocks of two hosts never agree."""
    events = [noted(store, "note.made", at) for at in (AT, AT - 10, AT + 5)]
    assert store.journal.list_timeline(TimelineQuery(stream=JOURNAL)) == events[::-1]
    assert store.journal.list_timeline(TimelineQuery(stream=JOURNAL, after=(AT, JOURNAL, 1))) == events[1:]
    assert store.journal.list_timeline(TimelineQuery(stream=JOURNAL, before=(AT + 5, JOURNAL, 3))) == events[1::-1]


def test_it_can_be_narrowed_by_kind_and_actor(store: Store) -> None:
    noted(store, "note.made", actor="ada")
    noted(store, "note.kept", actor="bob")
    noted(store, "notes", actor="ada")
    assert set(kinds(store, kind="note.")) == {"note.made", "note.kept"}
    assert set(kinds(store, kind="note")) == {"note.made", "note.kept", "notes"}
    assert kinds(store, kind="note.", actor="bob") == ["note.kept"]
    assert kinds(store, actor="b") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BUILD", ["build.red"]),
        ("red", ["build.red"]),
        ("ADA", ["build.red", "say"]),
        ("100%", ["build.red"]),
        ("1%0", []),
        ("a_b", ["build.red"]),
        ("axb", []),
        ("wow!", ["say"]),
        ('said "hi"', ["say"]),
        ('"text":"she', ["say"]),
        ("two\nlines", ["say"]),
        ("É", []),
        ("é", ["say"]),
        ("\\", ["say"]),
        ("'; DROP TABLE events; --", []),
        ("a\x00b", []),
    ],
)
def test_it_can_be_searched(store: Store, text: str, found: list[str]) -> None:
    noted(store, "build.red", actor="Ada", text="100% of a_b")
    noted(store, "say", actor="ada", text='she said "hi", wow! é two\nlines')
    assert sorted(kinds(store, text=text)) == found


# the index


@pytest.mark.parametrize(
    "query",
    [
        TimelineQuery(),
        TimelineQuery(newest_first=False),
        TimelineQuery(after=(AT + 100, JOURNAL, 100), newest_first=False),
        TimelineQuery(before=(AT + 100, JOURNAL, 100)),
        TimelineQuery(since=AT + 150, newest_first=False),
        TimelineQuery(since=AT + 150),
        TimelineQuery(since=AT + 10, after=(AT + 100, JOURNAL, 100), newest_first=False),
        TimelineQuery(kind="note.", limit=10),
    ],
)
def test_the_timeline_reads_its_index_from_a_place_in_it(store: Store, query: TimelineQuery) -> None:
    """Nothing is sorted, and nothing is read before the place where the page begins."""
    _filled(store, 200)
    plan = _plan(store, query)
    assert INDEX in plan
    assert "sort" not in plan.lower()
    assert "temp b-tree" not in plan.lower()
    if query.after or query.before or query.since:
        assert "index cond" in plan.lower() or "search events using" in plan.lower()


def test_one_stream_is_read_by_its_key(store: Store) -> None:
    _filled(store, 200)
    plan = _plan(store, TimelineQuery(stream=JOURNAL)).lower()
    assert INDEX not in plan
    assert "sort" not in plan
    assert "temp b-tree" not in plan


def _filled(store: Store, count: int) -> None:
    """Enough, and known to the planner, that reading everything is not the cheapest way."""
    rows = ",".join(
        f"('{JOURNAL}', {seq}, {AT + seq}, 'note.made', 'ada', '{{\"text\":\"{'x' * 400}\"}}', 'x')"
        for seq in range(1, 10 * count)
    )
    by_hand(store, f"INSERT INTO events (stream, seq, at, kind, actor, data, hash) VALUES {rows}")
    by_hand(store, "ANALYZE events")


def _plan(store: Store, query: TimelineQuery) -> str:
    sql, values = build_timeline(query)
    backend = store.driver.backend
    explain = "EXPLAIN QUERY PLAN " if backend == "sqlite" else "EXPLAIN "
    rows = store.driver.read(lambda one: one.listing(explain + sql, values))
    return "\n".join(str(row[-1]) for row in rows)
