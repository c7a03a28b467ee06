"""Outages of PostgreSQL during writes of the queue and the journal: each change is written exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from jackline.domain.events import Fact, broken_at
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem, WorkItem
from jackline.store.models import JOURNAL
from jackline.store.store import Store
from tests.race.test_postgres_outages import Saboteur
from tests.support.stores import AT, LEASE_MS

pytestmark = pytest.mark.postgres


@pytest.fixture
def store(postgres_store: Store) -> Store:
    return postgres_store


def _hold(store: Store) -> Hold:
    item = WorkItems(store).get("item-1")
    assert item is not None
    return Hold(item.id, item.owner_agent or "", item.token)


def _taken(store: Store) -> WorkItem:
    item: WorkItem | None = WorkQueue(store).claim_next((), "one", LEASE_MS, AT)
    assert item is not None
    return item


# In their order: each is what can be done after the one before it.
STEPS: dict[str, Callable[[Store], Any]] = {
    "enqueue": lambda store: WorkQueue(store).enqueue(NewItem("item-1", "mail", max_attempts=2), AT, "host"),
    "next": _taken,
    "renew": lambda store: WorkQueue(store).renew(_hold(store), LEASE_MS, AT),
    "park": lambda store: WorkQueue(store).park(_hold(store), "which?", AT),
    "answer": lambda store: WorkQueue(store).answer("item-1", "this", AT, "person"),
    "claim": lambda store: WorkQueue(store).claim("item-1", "two", LEASE_MS, AT),
    "annotate": lambda store: WorkQueue(store).annotate("item-1", "hm", AT, "person"),
    "event": lambda store: store.journal.append(Fact("note.made"), AT, "ada", "item-1"),
    "journal": lambda store: store.journal.append(Fact("note.made"), AT, "ada"),
    "release": lambda store: WorkQueue(store).release(_hold(store), AT),
}
KINDS = ["created", "claimed", "waiting", "answered", "claimed", "annotated", "note.made", "released", "buried"]


@pytest.mark.parametrize("heard", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize("broken", STEPS)
def test_a_connection_lost_at_commit_neither_loses_nor_doubles(
    store: Store, postgres_database: str, broken: str, heard: bool
) -> None:
    driver: Any = store.driver
    with psycopg.connect(postgres_database, autocommit=True) as killer:
        for name, step in STEPS.items():
            if name == broken:
                driver._connection = Saboteur(driver._connection, 1, heard=heard, killer=killer)
            said = step(store)
            if isinstance(said, WorkItem):  # what was said is what is written
                assert WorkItems(store).get("item-1") == said
            if name == "enqueue":
                assert said[1] is True  # it is new, also where only the answer was lost
    events = store.records.list_events("work:item-1")
    assert [event.kind.removeprefix("work.") for event in events] == KINDS
    assert broken_at(events) is None
    assert len(store.records.list_events(JOURNAL)) == 1
    item = WorkItems(store).get("item-1")
    assert item is not None
    assert (item.attempts, item.token, item.dead) == (2, 2, True)
    assert store.verify.check_all() == []
