"""The dashboard costs the same however much there is: counted in the steps of SQLite's own machine, not in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.domain.records import Run, RunStatus
from jackline.domain.spec import Spec
from jackline.features.reports import dashboard
from jackline.features.reports.dashboard_page import Dashboard, render_dashboard
from jackline.store import rows
from jackline.store.open import migrate, open_store
from jackline.store.store import Store

AT = 1_794_819_600_000
MINUTE = 60_000
SMALL = 1_000
STATES = ("queued", "running", "waiting", "succeeded", "failed", "cancelled")
REASONS = ("human", "approval", "in_doubt", "limit", "budget", "retry", "dependency", "paused")
STATUSES = ("pending", "in_flight", "waiting_human", "done", "failed", "cancelled")


def run_row(number: int) -> dict[str, Any]:
    run = Run(f"run-{number:09}", number, "r", "x", None, Spec("p", "/srv"), RunStatus(), None, 0, "", 0, 0)
    state = STATES[number % len(STATES)]
    values = rows.run_values(run, "")
    del values["to"]
    at = AT - number * 100
    ended = at if state in {"succeeded", "failed", "cancelled"} else None
    reason = REASONS[number // len(STATES) % len(REASONS)] if state == "waiting" else None
    failure = "timeout" if state == "failed" else None
    dates = {"created_at": at, "updated_at": at, "started_at": at, "finished_at": ended}
    return values | dates | {"state": state, "reason": reason, "failure": failure, "agent": f"agent-{number % 3}"}


def item_row(number: int) -> dict[str, Any]:
    status = STATUSES[number % len(STATUSES)]
    dead = int(status == "failed" and number // len(STATUSES) % 2)
    return {
        "id": f"item-{number}", "kind": f"kind-{number // 6 % 5}", "payload": "{}", "status": status,
        "owner_agent": "ada", "created_at": AT - number, "updated_at": AT, "notes": "", "priority": number % 7,
        "attempts": 1, "max_attempts": 5, "token": 1, "question": "?", "answer": "", "dead": dead,
        "finished_at": AT - number if status == "failed" else None, "event_seq": 0, "chain_head": "",
    }  # fmt: skip


def event_row(number: int) -> dict[str, Any]:
    kind = ("agent.message", "call.done", "turn.started", "work.created")[number % 4]
    stream = f"run-{number % 1000:09}"
    return {"stream": stream, "seq": number, "at": AT - number, "kind": kind, "actor": "x", "data": "{}", "hash": "h"}


def entry_row(number: int) -> dict[str, Any]:
    kind = ("learning", "hypothesis", "evidence")[number % 3]
    return {
        "case_id": "c", "kind": kind, "number": number, "at": AT - number, "updated_at": AT, "text": "t",
        "status": "none", "data": "{}",
    }  # fmt: skip


def fill(store: Store, runs: int, events: int) -> None:
    connection = store.driver._connection  # type: ignore[attr-defined]
    connection.execute("BEGIN")
    connection.execute("INSERT INTO repositories VALUES ('r', '/srv', 1, 0)")
    connection.execute(
        "INSERT INTO cases VALUES ('c','r','/srv','u',NULL,'open','','{}',0,0,0,0,'{}',0,0,NULL,0,'')",
    )
    for table, count, row in (
        ("runs", runs, run_row),
        ("specs", runs, lambda number: {"run_id": f"run-{number:09}", "spec": '{"prompt":"p","workspace":"/srv"}'}),
        ("work_items", runs, item_row),
        ("events", events, event_row),
        ("case_entries", runs, entry_row),
    ):
        names = list(row(1))
        sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        connection.executemany(sql, (tuple(row(number).values()) for number in range(1, count + 1)))
    connection.execute("COMMIT")


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Any]:
    stores: list[Store] = []

    def make(runs: int, events: int) -> Store:
        place = str(tmp_path / str(runs) / "state.sqlite")
        migrate(place)
        stores.append(open_store(place, create=False))
        fill(stores[-1], runs, events)
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def counted(store: Store) -> tuple[int, Dashboard]:
    """How many hundreds of steps SQLite takes to read everything that is shown."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection = store.driver._connection  # type: ignore[attr-defined]
    connection.set_progress_handler(count, 100)
    shown = dashboard.collect_dashboard(store, AT + MINUTE)
    connection.set_progress_handler(None, 0)
    return steps, shown


@pytest.mark.parametrize(
    ("runs", "events"),
    [(20 * SMALL, 50 * SMALL), pytest.param(100 * SMALL, 1000 * SMALL, marks=pytest.mark.full)],
)
def test_it_costs_no_more_with_a_hundred_times_as_much(filled: Any, runs: int, events: int) -> None:
    few, _ = counted(filled(SMALL, SMALL))
    many, shown = counted(filled(runs, events))
    # Of each kind of item up to a hundred are counted, where the small store has only thirty: a few steps each.
    assert many <= 2 * few, (few, many)
    assert len(render_dashboard(shown)) < 40_000
    assert (len(shown.running), len(shown.failed), len(shown.dead), shown.queued_count) == (11, 11, 11, 100)
