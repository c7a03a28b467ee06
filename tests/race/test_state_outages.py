"""Outages of PostgreSQL around the queue and the journal: each change is written once, wherever it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from jackline.domain.events import Fact, broken_at
from jackline.domain.work import Hold, NewItem, WorkItem
from jackline.store.contract import JOURNAL
from jackline.store.sql_store import SqlStore
from tests.race.test_postgres_outages import Saboteur
from tests.support.stores import AT, LEASE_MS

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(postgres_store: SqlStore) -> SqlStore:
    return postgres_store


def _hold(store: SqlStore) -> Hold:
    item = store.item("item-1")
    assert item is not None
    return Hold(item.id, item.owner_agent or "", item.token)


def _taken(store: SqlStore) -> WorkItem:
    item: WorkItem | None = store.claim_next((), "one", LEASE_MS, AT)
    assert item is not None
    return item


# In their order: each is what can be done after the one before it.
STEPS: dict[str, Callable[[SqlStore], Any]] = {
    "enqueue": lambda store: store.enqueue(NewItem("item-1", "mail", max_attempts=2), AT, "host"),
    "next": _taken,
    "renew": lambda store: store.renew_item(_hold(store), LEASE_MS, AT),
    "park": lambda store: store.park_item(_hold(store), "which?", AT),
    "answer": lambda store: store.answer_item("item-1", "this", AT, "person"),
    "claim": lambda store: store.claim_item("item-1", "two", LEASE_MS, AT),
    "annotate": lambda store: store.annotate_item("item-1", "hm", AT, "person"),
    "event": lambda store: store.append_event(Fact("note.made"), AT, "ada", "item-1"),
    "journal": lambda store: store.append_event(Fact("note.made"), AT, "ada"),
    "release": lambda store: store.release_item(_hold(store), AT),
}
KINDS = ["created", "claimed", "waiting", "answered", "claimed", "annotated", "note.made", "released", "buried"]


@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("broken", STEPS)
def test_a_connection_lost_at_commit_neither_loses_nor_doubles(
    store: SqlStore, postgres_database: str, broken: str, heard: bool
) -> None:
    driver: Any = store.driver
    with psycopg.connect(postgres_database, autocommit=True) as killer:
        for name, step in STEPS.items():
            if name == broken:
                driver._connection = Saboteur(driver._connection, 1, heard=heard, killer=killer)
            said = step(store)
            if isinstance(said, WorkItem):  # what was said is what is written
                assert store.item("item-1") == said
            if name == "enqueue":
                assert said[1] is True  # it is new, also where only the answer was lost
    events = store.events("work:item-1")
    assert [event.kind.removeprefix("work.") for event in events] == KINDS
    assert broken_at(events) is None
    assert len(store.events(JOURNAL)) == 1
    item = store.item("item-1")
    assert item is not None
    assert (item.attempts, item.token, item.dead) == (2, 2, True)
    assert store.check() == []
