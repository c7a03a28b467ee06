"""Races: threads and processes that fight for one database; nothing is lost, doubled or starved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import RunStatus
from jackline.domain.states import Decision, RunState
from jackline.errors import Busy, Fenced, Refused
from jackline.store.models import RunChange, RunQuery
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, READ, FakeClock, begun, claimed, intent, made, new_run, owner


def _together(*actions: Callable[[], object]) -> list[object]:
    """Run the actions at the same moment; what each returned or raised."""
    results: list[object] = [None] * len(actions)
    begin = threading.Barrier(len(actions))

    def act(place: int) -> None:
        begin.wait()
        try:
            results[place] = actions[place]()
        except (Busy, Refused, Fenced) as error:
            results[place] = error

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_one_of_many_threads_gets_the_run(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(6)]
    for number in range(10):
        run_id = made(stores[0], f"run-{number}").id
        results = _together(*(partial(claimed, store, run_id) for store in stores))
        assert sum(isinstance(result, Busy) for result in results) == 5
        assert len(stores[0].records.list_attempts(run_id)) == 1


def test_one_of_many_threads_takes_over(opened: Callable[..., Store], clock: FakeClock) -> None:
    stores = [opened() for _ in range(4)]
    begun(stores[0])
    for token in range(2, 8):
        clock.now += LEASE_MS
        results = _together(*(partial(claimed, store) for store in stores))
        winners = [result for result in results if not isinstance(result, Busy)]
        assert [getattr(winner, "token", None) for winner in winners] == [token]


def test_one_of_many_processes_gets_the_run(store: Store, database: str, start: Callable[..., Any]) -> None:
    made(store)
    programs = [start("claim", database, f"worker-{number}", "run-1") for number in range(4)]
    assert [program.hear() for program in programs] == ["ready"] * 4
    for program in programs:
        program.send_order()
    tokens = [program.hear()["token"] for program in programs]
    assert sorted(tokens, key=str) == [1, None, None, None]


def test_the_same_run_is_made_once_by_many(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(6)]
    results: list[Any] = _together(*(partial(store.runs.create, new_run(), AT) for store in stores))
    assert sorted(new for _, new in results) == [False] * 5 + [True]
    assert made(stores[0], "run-2").number == 2


def test_numbers_have_no_gap_and_no_double(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(4)]

    def make(store: Store, place: int) -> None:
        for number in range(5):
            made(store, f"r-{place}-{number}")

    _together(*(partial(make, store, place) for place, store in enumerate(stores)))
    assert sorted(row.number for row in stores[0].runs.list_page(RunQuery())) == list(range(1, 21))


def test_cancel_and_finish_race_to_one_end(opened: Callable[..., Store]) -> None:
    canceller, worker = opened(), opened()
    finish = RunChange(AT, (Fact("run.succeeded"),), RunStatus(state=RunState.SUCCEEDED))
    for number in range(10):
        run_id = f"run-{number}"
        lease = begun(worker, run_id)
        cancelled, finished = _together(
            partial(canceller.runs.request_cancel, run_id, AT, "notice-1"),
            partial(worker.leases.write_change, lease, finish),
        )
        run = worker.runs.get(run_id)
        assert run is not None
        assert run.status.state is RunState.SUCCEEDED
        assert not isinstance(finished, Exception)
        assert isinstance(cancelled, Refused) is not run.status.cancel_requested
    assert worker.verify.check_all() == []


def test_two_doors_never_allow_the_same_effect_twice(opened: Callable[..., Store]) -> None:
    doors = (opened(), opened())
    lease = begun(doors[0])

    def admit(store: Store, call_id: str, key: str) -> Decision:
        return store.ledger.admit(lease, intent(call_id, key=key, target=""), decide_call, (1, 1), AT)[1].decision

    for number in range(15):
        key = f"key-{number}"
        results: list[Any] = _together(
            partial(admit, doors[0], f"a-{number}", key), partial(admit, doors[1], f"b-{number}", key)
        )
        assert sorted(results) == [Decision.ALLOW, Decision.DENY]
    assert doors[0].verify.check_all() == []


def test_threads_share_one_store(store: Store) -> None:
    lease = begun(store)

    def work(name: int) -> None:
        for number in range(10):
            store.ledger.admit(lease, intent(f"{name}-{number}", READ), decide_call, (1, 1), AT)
            store.leases.renew(lease, LEASE_MS, 1)
            assert store.runs.get("run-1") is not None

    _together(*(partial(work, name) for name in range(4)))
    run = store.runs.get("run-1")
    assert run is not None
    assert (run.status.spent.calls, run.status.spent.wall_ms, run.event_seq) == (40, 40, 42)
    assert len(store.calls.list_all("run-1")) == 40
    assert store.verify.check_all() == []


def test_reading_never_waits_for_a_writer(store: Store, database: str, start: Callable[..., Any]) -> None:
    """Neither for one that holds the gate and an open transaction, nor for one of our own that waits behind it."""
    made(store)
    holder = start("hold", database)
    assert holder.hear() == "holding"
    waiting = threading.Thread(target=lambda: made(store, "run-2"))
    if store.admin.get_status().backend == "sqlite":
        waiting.start()
    assert store.runs.get("run-1") is not None
    assert [row.id for row in store.runs.list_page(RunQuery())] == ["run-1"]
    assert len(store.records.list_events("run-1")) == 1
    holder.send_order()
    if waiting.ident is None:
        waiting.start()
    waiting.join(60)
    assert store.runs.get("run-2") is not None


_PROCESSES, _PAIRS = 8, 30


def test_eight_processes_hammer_one_database(store: Store, database: str, start: Callable[..., Any]) -> None:
    _hammer(store, database, start, _PAIRS)


@pytest.mark.full
def test_eight_processes_hammer_one_database_for_long(store: Store, database: str, start: Callable[..., Any]) -> None:
    _hammer(store, database, start, 40 * _PAIRS)


def _hammer(store: Store, database: str, start: Callable[..., Any], pairs: int) -> None:
    programs = [start("hammer", database, str(number), str(pairs)) for number in range(_PROCESSES)]
    for program in programs:
        assert program.hear() == "ready"
    for program in programs:
        program.send_order()
    slowest = [program.hear()["slowest"] for program in programs]
    assert max(slowest) < 20, "a writer was starved"  # seconds, for what takes milliseconds
    rows = store.runs.list_page(RunQuery())
    assert sorted((row.number, row.state) for row in rows) == [(n, "succeeded") for n in range(1, _PROCESSES + 1)]
    for row in rows:
        run = store.runs.get(row.id)
        assert run is not None
        assert (
            run.status.spent.calls
            == len(store.calls.list_all(row.id))
            == len(store.calls.list_receipts(row.id))
            == pairs
        )
        assert run.event_seq == len(store.records.list_events(row.id, limit=10_000)) == 3 + 2 * pairs
    assert store.verify.check_all() == []


def test_a_stale_worker_never_wins(opened: Callable[..., Store], clock: FakeClock) -> None:
    """A zombie and its successor write at the same moment, again and again: only the successor's writes count."""
    zombie, successor = opened(), opened()
    made(zombie)
    for round_ in range(10):
        old = claimed(zombie)
        clock.now += LEASE_MS
        late = intent(f"late-{old.token}", READ)
        _together(
            partial(successor.leases.claim, "run-1", owner(f"next-{round_}"), LEASE_MS, AT),
            partial(zombie.ledger.admit, old, late, decide_call, (1, 1), AT),
        )
        with pytest.raises(Fenced):
            zombie.leases.write_change(old, RunChange(AT, status=RunStatus(state=RunState.SUCCEEDED)))
        clock.now += LEASE_MS
    assert successor.verify.check_all() == []


def test_processes_together_reserve_no_more_than_the_day_has(
    store: Store, database: str, start: Callable[..., Any]
) -> None:
    programs = [start("reserve", database, f"worker-{number}", "1000000") for number in range(4)]
    for program in programs:
        assert program.hear() == "ready"
    for program in programs:
        program.send_order()
    reserved = sorted(program.hear()["reserved"] for program in programs)
    assert reserved == [0, 0, 400_000, 600_000]
