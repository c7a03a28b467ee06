"""Builds a database with many events quickly: half in the journal, half of work items, all in valid chains.

The rows bypass the store, many in one round trip; the store's own check must find nothing wrong.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from jackline.domain.events import GENESIS, Event, Fact, place
from jackline.domain.states import WorkStatus
from jackline.features.work import item_store
from jackline.features.work.work_item import WorkItem, get_item_stream
from jackline.store.models import JOURNAL
from jackline.store.open import migrate

APART_MS = 2_592  # a million of them in thirty days
_EVENTS_PER_ITEM = 10
_OPEN = 25  # the newest items: as many in a small database as in a big one
_BATCH = 20_000
_EVENT = f"INSERT INTO events ({', '.join(Event._fields)}) VALUES ({', '.join('?' * len(Event._fields))})"
_ITEM = (*WorkItem._fields, "lease_boot", "lease_until")

Row = tuple[Any, ...]


class Fill:
    """The rows of a database, ordered by time; afterwards the heads of the chains are known."""

    def __init__(self, count: int, begin: int) -> None:
        self._count, self._begin = count, begin
        self._journal = (0, GENESIS)
        self._items: list[WorkItem] = []  # as they are after the events so far
        self._first_open = -(-(count // 2) // _EVENTS_PER_ITEM) - _OPEN

    def events(self) -> Iterator[Row]:
        """Alternate between the journal and an item; an item has ten events before the next one starts."""
        for number in range(self._count):
            at = self._begin + number * APART_MS
            yield self._build_item_event(number // 2, at) if number % 2 else self._build_journal_event(number, at)

    def items(self) -> Iterator[Row]:
        """All items are done, except the newest."""
        for item in self._items:
            yield (*(item._asdict() | {"status": str(item.status), "dead": 0}).values(), None, None)

    def streams(self) -> Iterator[Row]:
        """The head of the journal."""
        yield (JOURNAL, *self._journal, self._begin)

    def _build_journal_event(self, number: int, at: int) -> Row:
        fact = Fact("build.finished", {"build": number, "result": "green", "text": "nothing was wrong with it"})
        seq, head = self._journal
        event = place(fact, JOURNAL, seq + 1, at, "ada", head)
        self._journal = (event.seq, event.hash)
        return event

    def _build_item_event(self, number: int, at: int) -> Row:
        index, seq = divmod(number, _EVENTS_PER_ITEM)
        if not seq:
            self._items.append(
                WorkItem(_build_item_id(index), "mail", '{"to":"ada"}', WorkStatus.PENDING, None, at, at)
            )
        item, fact = _advance_item(self._items[index], seq, at, ends=index < self._first_open)
        event = place(fact, get_item_stream(item.id), seq + 1, at, "ada", item.chain_head or GENESIS)
        self._items[index] = item._replace(event_seq=event.seq, chain_head=event.hash)
        return event


def _advance_item(item: WorkItem, seq: int, at: int, *, ends: bool) -> tuple[WorkItem, Fact]:
    """Advance an item by one event; it is claimed before it ends."""
    if not seq:
        return item, item_store.build_created(item)
    if ends and seq == _EVENTS_PER_ITEM - 2:
        item = item._replace(status=WorkStatus.IN_FLIGHT, owner_agent="ada", token=1, attempts=1)
        return item, item_store.build_claimed(item, takeover=False)
    if ends and seq == _EVENTS_PER_ITEM - 1:
        item = item._replace(status=WorkStatus.DONE, finished_at=at)
        return item, item_store.build_resolved(item, None)
    return item, Fact("note.made", {"text": "looked at it"})


def _build_item_id(number: int) -> str:
    return f"mail-{number:07d}"


def build_sqlite(path: str, count: int, begin: int) -> None:
    """Build a SQLite file with `count` events."""
    migrate(path)
    fill = Fill(count, begin)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")  # no other process reads it yet
    connection.execute("BEGIN")
    for many in _split_batches(fill.events()):
        connection.executemany(_EVENT, many)
    connection.executemany(
        f"INSERT INTO work_items ({', '.join(_ITEM)}) VALUES ({_build_placeholders(_ITEM)})", fill.items()
    )
    connection.executemany("INSERT INTO streams VALUES (?, ?, ?, ?)", fill.streams())
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)  # otherwise the disk would still be busy during the measurements
    os.close(descriptor)


def build_postgres(address: str, count: int, begin: int) -> None:
    """Build a PostgreSQL schema with `count` events."""
    import psycopg

    migrate(address)
    fill = Fill(count, begin)
    parts = (
        ("events", Event._fields, fill.events),
        ("work_items", _ITEM, fill.items),
        ("streams", ("name", "event_seq", "chain_head", "updated_at"), fill.streams),
    )
    with psycopg.connect(address, autocommit=True) as connection:
        for table, columns, rows in parts:
            with connection.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows():
                    copy.write_row(row)
            connection.execute(f"VACUUM ANALYZE {table}")
        connection.execute("CHECKPOINT")


def _split_batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    waiting = iter(rows)
    while batch := list(islice(waiting, _BATCH)):
        yield batch


def _build_placeholders(columns: tuple[str, ...]) -> str:
    return ", ".join("?" * len(columns))
