"""Races for the queue: one run for a key, one claim for a run, one notice for a cancelled one, no batch too full."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from jackline.domain.states import RunState
from jackline.errors import NotStartable
from jackline.store.models import QueueOptions
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, by_hand, new_run, owner

SECONDS = 60.0


def put(store: Store, run_id: str, **options: Any) -> None:
    store.runs.create(new_run(run_id), AT, QueueOptions(**options))


def test_eight_processes_create_one_run_for_a_key(store: Store, database: str, start: Any) -> None:
    programs = [start("enqueue", database, str(number), "nightly") for number in range(8)]
    assert [program.hear() for program in programs] == ["ready"] * 8
    for program in programs:
        program.send_order()
    heard = [program.hear() for program in programs]
    assert sorted(one["new"] for one in heard) == [False] * 7 + [True]
    assert len({one["run"] for one in heard}) == 1
    assert [entry.run_id for entry in store.queue.list_startable(AT)] == [heard[0]["run"]]


def test_two_services_start_each_run_once_and_cancel_each_once(store: Store, database: str, start: Any) -> None:
    for number in range(12):
        put(store, f"of-batch-{number}", batch="batch", batch_slots=1)
        put(store, f"bad-{number}")
        put(store, f"next-{number}", depends_on=(f"bad-{number}",))
        put(store, f"last-{number}", depends_on=(f"next-{number}", f"of-batch-{number}"))
    programs = [start("serve", database, str(number)) for number in range(2)]
    assert [program.hear() for program in programs] == ["ready"] * 2
    for program in programs:
        program.send_order()
    heard = [program.hear() for program in programs]
    claimed = sorted(run_id for one in heard for run_id in one["claimed"])
    assert claimed == sorted(f"{name}-{number}" for name in ("of-batch", "bad") for number in range(12))
    cancelled = sorted(run_id for one in heard for run_id in one["cancelled"])
    assert cancelled == sorted(f"{name}-{number}" for name in ("next", "last") for number in range(12))
    assert max(one["most"] for one in heard) == 1
    for run_id in cancelled:
        run = store.runs.get(run_id)
        assert run is not None
        assert run.status.state is RunState.CANCELLED
        assert [notice.kind for notice in store.records.list_notices(run_id)] == ["run.cancelled"]
    assert store.verify.check_all() == []


@pytest.mark.postgres
def test_a_claim_waits_for_another_one_of_its_batch(postgres_store: Store, postgres_database: str) -> None:
    """The count of a batch must see the claims that are being made: one row of it is locked."""
    for number in range(2):
        put(postgres_store, f"b-{number}", batch="batch", batch_slots=1)
    counted, go = threading.Event(), threading.Event()
    claim = postgres_store.leases._claim
    results: dict[str, object] = {}  # by run: the threads may write here in either order

    def claim_slowly(*words: Any) -> Any:
        counted.set()
        go.wait()
        return claim(*words)

    def try_claim(store: Store, run_id: str) -> None:
        try:
            results[run_id] = store.leases.claim(run_id, owner(run_id), LEASE_MS, AT, from_queue=True)[0].run_id
        except NotStartable as error:
            results[run_id] = error

    postgres_store.leases._claim = claim_slowly  # type: ignore[method-assign, assignment]
    second, watcher = (open_store(postgres_database, create=False) for _ in range(2))
    threads = [threading.Thread(target=try_claim, args=pair) for pair in ((postgres_store, "b-0"), (second, "b-1"))]
    threads[0].start()
    assert counted.wait(SECONDS)
    threads[1].start()
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    until = time.monotonic() + SECONDS
    while threads[1].is_alive() and not by_hand(watcher, waiting):
        assert time.monotonic() < until
        time.sleep(0.01)
    go.set()
    for thread in threads:
        thread.join()
    for store in (second, watcher):
        store.close()
    assert results["b-0"] == "b-0"
    assert isinstance(results["b-1"], NotStartable)
