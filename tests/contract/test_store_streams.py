"""Streams of every kind: the database refuses to alter them, and what was altered nevertheless is found."""

from __future__ import annotations

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.errors import StoreError
from jackline.features.cases.case_model import CaseEntry, EntryKind, NewCase, Problem
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import NewItem
from jackline.store.models import JOURNAL, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, begun, by_hand, drop_triggers, intent


def add_case(store: Store) -> None:
    new = NewCase("case-1", "repository", "/srv/repository", "ada", "why is it red?", Problem())
    CaseNotebook(store).start(new, "repository:ada", AT)


def add_everything(store: Store) -> None:
    """A run, an item, a case and the journal: a stream of each kind, each of more than one event."""
    begun(store)
    WorkQueue(store).enqueue(NewItem("item-1", "mail"), AT, "ada")
    store.journal.append(Fact("item.noted"), AT, "ada", "item-1")
    add_case(store)
    CaseNotebook(store).add_entry(
        "case-1", CaseEntry("case-1", EntryKind.HYPOTHESIS, 0, 0, 0, "it is the cache"), AT, "ada"
    )
    for _ in range(2):
        store.journal.append(Fact("note.made"), AT, "ada")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE events SET data = '{{}}' WHERE stream = '{stream}'",
        "DELETE FROM events WHERE stream = '{stream}'",
        "DELETE FROM events WHERE stream = '{stream}' AND seq = 2",
        "REPLACE INTO events SELECT stream, seq, at, 'forged', actor, data, hash FROM events WHERE stream = '{stream}'",
    ],
)
@pytest.mark.parametrize("stream", [JOURNAL, "work:item-1", "case:case-1", "run-1"])
def test_the_database_itself_refuses_to_alter_an_event(store: Store, stream: str, sql: str) -> None:
    add_everything(store)
    before = store.records.list_events(stream)
    if "REPLACE" in sql and store.admin.get_status().backend == "postgres":
        sql = sql.replace("REPLACE", "INSERT") + " ON CONFLICT (stream, seq) DO UPDATE SET kind = 'forged'"
    with pytest.raises(Exception, match="events are append-only"):
        by_hand(store, sql.format(stream=stream))
    assert store.records.list_events(stream) == before
    assert len(before) > 1
    assert store.verify.check_all() == []


def test_an_event_whose_place_is_taken_takes_the_whole_change_back(store: Store) -> None:
    """As somebody may have written by hand: the item is not changed without its event."""
    add_everything(store)
    by_hand(store, "INSERT INTO events SELECT stream, 3, at, 'forged', actor, data, 'x' FROM events "
                   "WHERE stream = 'work:item-1' AND seq = 2")  # fmt: skip
    before = WorkItems(store).get("item-1")
    with pytest.raises(StoreError):
        WorkQueue(store).annotate("item-1", "hm", AT, "ada")
    assert WorkItems(store).get("item-1") == before
    assert [event.kind for event in store.records.list_events("work:item-1")][2:] == ["forged"]
    assert store.journal.append(Fact("note.made"), AT, "ada").seq == 3  # and the connection goes on


def test_a_store_with_every_kind_of_stream_is_in_order(store: Store) -> None:
    add_everything(store)
    assert store.verify.check_all() == []
    counts = store.admin.get_status().counts
    assert (counts["runs"], counts["work_items"], counts["cases"], counts["events"]) == (1, 1, 1, 8)


@pytest.mark.parametrize(
    ("stream", "name"),
    [(JOURNAL, f"stream {JOURNAL}"), ("work:item-1", "work item item-1"), ("case:case-1", "case case-1")],
)
@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE events SET data = '{{}} ' WHERE stream = '{stream}' AND seq = 1", "its chain is broken at event 1"),
        ("UPDATE events SET actor = 'eve' WHERE stream = '{stream}' AND seq = 2", "its chain is broken at event 2"),
        ("DELETE FROM events WHERE stream = '{stream}' AND seq = 1", "its chain is broken at event 1"),
        ("DELETE FROM events WHERE stream = '{stream}' AND seq = 2", "its chain ends at event 1, its row says 2"),
        ("DELETE FROM events WHERE stream = '{stream}'", "its chain ends at event 0, its row says 2"),
        (
            "INSERT INTO events SELECT stream, -4, at, kind, actor, data, 'x' FROM events WHERE hash = '{hash}'",
            "event -4 precedes the first",
        ),
    ],
)
def test_tampering_is_found(store: Store, stream: str, name: str, tampering: str, said: str) -> None:
    add_everything(store)
    drop_triggers(store)
    by_hand(store, tampering.format(stream=stream, hash=store.records.list_events(stream)[0].hash))
    assert store.verify.check_all() == [f"{name}: {said}"]


@pytest.mark.parametrize("table", ["streams", "work_items", "cases"])
def test_a_row_that_does_not_agree_with_its_chain_is_found(store: Store, table: str) -> None:
    add_everything(store)
    by_hand(store, f"UPDATE {table} SET chain_head = 'x'")
    (found,) = store.verify.check_all()
    assert "its chain ends at event 2 with another hash than its row says" in found


def test_events_of_nothing_are_found(store: Store) -> None:
    add_everything(store)
    for stream in ("work:item-2", "case:case-10", "other:", "work"):
        by_hand(store, f"INSERT INTO events SELECT '{stream}', 1, at, kind, actor, data, hash FROM events "
                       "WHERE stream = 'run-1' AND seq = 1")  # fmt: skip
    assert store.verify.check_all() == [
        "there are events of a stream case:case-10 that does not exist",
        "there are events of a stream other: that does not exist",
        "there are events of a run work that does not exist",
        "there are events of a stream work:item-2 that does not exist",
    ]


def test_a_receipt_is_not_replaced_either(store: Store) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("call-1", "succeed", AT + 1, "sent", 0, "message-1"))
    columns = "call_id, run_id, key, target, rule, output, external_id, origin, at"
    forged = columns.replace("output", "'forged'")
    if store.admin.get_status().backend == "sqlite":
        by_hand(store, f"REPLACE INTO receipts ({columns}) SELECT {forged} FROM receipts")
    assert [receipt.output for receipt in store.calls.list_receipts("run-1")] == ["sent"]
    assert store.verify.check_all() == []
