"""The queries of the queue read an index from one end: they cost the same however many items there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.features.work.item_queries import WORDS, build_listing
from jackline.features.work.work_item import ItemQuery
from jackline.store import queries
from jackline.store.open import migrate

SORTED = "USE TEMP B-TREE"
VALUES = {**WORDS, "kind": "k", "any": 0, "status": "pending", "clock_boot": "b", "clock_now": 1}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = str(tmp_path / "state.sqlite")
    migrate(path)
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def _plan(connection: sqlite3.Connection, sql: str, values: dict[str, object]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (ItemQuery(), "work_items_newest"),
        (ItemQuery(before=(1, "x")), "work_items_newest ((created_at,id)<(?,?))"),
        (ItemQuery(statuses=("done",)), "work_items_status (status=?)"),
        (ItemQuery(statuses=("done",), before=(1, "x")), "work_items_status (status=? AND (created_at,id)<(?,?))"),
        (ItemQuery(kinds=("k",)), "work_items_kind (kind=?)"),
        (ItemQuery(kinds=("k",), statuses=("pending",)), "work_items_status (status=?)"),
        (ItemQuery(kinds=("k",), statuses=("done",)), "work_items_kind (kind=?)"),
        (ItemQuery(owner="o"), "work_items_owner (owner_agent=?)"),
        (ItemQuery(owner="o", kinds=("k",), statuses=("done",)), "work_items_owner (owner_agent=?)"),
    ],
)
def test_a_page_reads_one_index(connection: sqlite3.Connection, query: ItemQuery, index: str) -> None:
    sql, values = build_listing(query)
    read, *rest = [line for line in _plan(connection, sql, values) if "work_items" in line]
    assert index in read
    assert rest == []
    # Only the page itself may be sorted, which is done last.
    inner = sql[sql.index("(SELECT", sql.index("(SELECT") + 1) + 1 : sql.rindex(") AS part")]
    assert SORTED not in " ".join(_plan(connection, inner, values))


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("first_pending", "work_items_next (status=?)"),
        ("pick_pending", "work_items_next (status=?)"),
        ("first_pending_of_kind", "work_items_next_of_kind (status=? AND kind=?)"),
        ("pick_pending_of_kind", "work_items_next_of_kind (status=? AND kind=?)"),
        ("first_expired", "work_items_next (status=?)"),
        ("pick_expired", "work_items_next (status=?)"),
        ("count_items", "COVERING INDEX work_items_next_of_kind (status=?)"),
    ],
)
def test_the_front_of_the_queue_is_found_by_an_index(connection: sqlite3.Connection, name: str, index: str) -> None:
    (plan,) = _plan(connection, queries.expand_query(queries.load_queries("sqlite")[name]), VALUES)
    assert index in plan


def test_the_unfinished_are_found_by_an_index(connection: sqlite3.Connection) -> None:
    plan = _plan(
        connection,
        queries.expand_query(queries.load_queries("sqlite")["unfinished_items"]),
        {**VALUES, "older_than": 1, "limit": 1},
    )
    reads = [line for line in plan if " work_items" in line]
    assert len(reads) == 2
    assert all("work_items_status (status=?)" in line for line in reads)
