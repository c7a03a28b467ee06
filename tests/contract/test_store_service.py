"""Services, runs that cannot start, and how often a run was taken over; on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Lease, RunStatus, SubjectNotice, Turn
from jackline.domain.states import RunState, WaitReason
from jackline.engine.recovery import count_takeovers
from jackline.errors import Overtaken
from jackline.features.service.service_store import ServiceRecord, ServiceStore
from jackline.store.models import QueueOptions, RunChange
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, READ, claimed, intent, made, new_run, owner

DAY_MS = 86_400_000


def record(service_id: str, **more: Any) -> ServiceRecord:
    values: dict[str, Any] = {"host": "host-1", "boot": "boot-1", "pid": 7, "slots": 2, "started_at": AT, "seen_at": AT}
    return ServiceRecord(id=service_id, **(values | more))


def death(notice_id: str) -> SubjectNotice:
    return SubjectNotice(
        id=notice_id, subject="service:a", kind="service.died", title="a died", body="", created_at=AT + 5
    )


def test_an_open_service_is_one_that_was_neither_stopped_nor_reported(store: Store, database: str) -> None:
    services = ServiceStore(store)
    for name in ("a", "b", "c"):
        services.add(record(name))
    services.add(record("elsewhere", host="host-2"))
    services.renew("a", AT + 1)
    services.stop("b", AT + 2)
    elsewhere = [("elsewhere", AT)] if "://" not in database else []  # its host has another name now
    found = [(one.id, one.seen_at) for one in services.list_open("host-1")]
    assert found == [("a", AT + 1), ("c", AT), *elsewhere]


def test_a_death_is_reported_once_with_its_notice(store: Store) -> None:
    services = ServiceStore(store)
    services.add(record("a"))
    assert services.report_dead("a", death("n1"), AT + 5)
    assert not services.report_dead("a", death("n2"), AT + 6)
    assert [one.id for one in store.notices.list_newest()] == ["n1"]
    assert services.list_open("host-1") == []


def test_a_service_that_was_stopped_is_never_reported(store: Store) -> None:
    services = ServiceStore(store)
    services.add(record("a"))
    services.stop("a", AT + 1)
    assert not services.report_dead("a", death("n1"), AT + 5)
    assert store.notices.list_newest() == []


def test_services_that_ended_long_ago_are_forgotten(store: Store) -> None:
    services = ServiceStore(store)
    for name in ("stopped", "open"):
        services.add(record(name))
    services.stop("stopped", AT)
    services.add(record("now", started_at=AT + 31 * DAY_MS, seen_at=AT + 31 * DAY_MS))
    assert [one.id for one in services.list_unended()] == ["now", "open"]
    services.stop("now", AT)
    assert [one.id for one in services.list_unended(1)] == ["open"]


# runs that cannot start


def test_a_failed_start_is_tried_again_after_growing_pauses_with_one_notice(store: Store) -> None:
    services = ServiceStore(store)
    made(store)
    pauses = [
        services.record_start_failure("run-1", "its folder is gone", AT + n, f"n{n}").next_at - AT - n for n in range(9)
    ]
    assert pauses == [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]
    (notice,) = store.records.list_notices("run-1")
    assert (notice.id, notice.kind, notice.body) == ("n0", "run.cannot_start", "its folder is gone")
    (failure,) = services.list_start_failures()
    assert (failure.since, failure.failures, failure.reason) == (AT, 9, "its folder is gone")
    assert store.verify.verify_run("run-1").problems == ()


def test_another_reason_is_another_notice(store: Store) -> None:
    services = ServiceStore(store)
    made(store)
    services.record_start_failure("run-1", "its folder is gone", AT, "n1")
    assert services.record_start_failure("run-1", "the project file is broken", AT, "n2").failures == 1
    assert {one.id for one in store.records.list_notices("run-1")} == {"n1", "n2"}


def test_a_failure_is_over_when_the_run_has_started(store: Store) -> None:
    services = ServiceStore(store)
    made(store)
    services.record_start_failure("run-1", "its folder is gone", AT, "n1")
    claimed(store)
    assert services.list_start_failures() == []


# claims of a service


@pytest.mark.parametrize("status", [
    RunStatus(state=RunState.WAITING, reason=WaitReason.PAUSED),
    RunStatus(state=RunState.WAITING, reason=WaitReason.RETRY),
    RunStatus(state=RunState.FAILED),
])  # fmt: skip
def test_a_service_takes_a_run_only_as_it_saw_it(store: Store, status: RunStatus) -> None:
    seen = store.runs.create(new_run(), AT, QueueOptions())[0].status
    lease = claimed(store)
    store.leases.write_change(lease, RunChange(AT + 2, (Fact("run.waiting"),), status))
    with pytest.raises(Overtaken):
        store.leases.claim("run-1", owner("late"), LEASE_MS, AT + 3, None, seen, from_queue=True)
    now = store.runs.get("run-1")
    assert now is not None
    assert now.status.attempt == 1


def test_a_person_may_take_what_has_changed_since(store: Store) -> None:
    seen = made(store).status
    lease = claimed(store)
    paused = RunStatus(state=RunState.WAITING, reason=WaitReason.PAUSED)
    store.leases.write_change(lease, RunChange(AT + 2, (Fact("run.waiting"),), paused))
    assert store.leases.claim("run-1", owner("person"), LEASE_MS, AT + 3, None, seen)[0].token == 2


# takeovers


def take_over(store: Store, times: int) -> None:
    for _ in range(times):
        run = store.runs.get("run-1")
        assert run is not None
        dead = run.status.attempt if run.status.state is RunState.RUNNING else None
        store.leases.claim("run-1", owner(), LEASE_MS, AT, dead)


def held(store: Store) -> Lease:
    """The lease of the run's newest attempt."""
    run = store.runs.get("run-1")
    assert run is not None
    return Lease(run_id="run-1", owner=run.owner or "", token=run.status.attempt)


def call(store: Store, key: str) -> None:
    lease = held(store)
    store.ledger.admit(lease, intent(f"{key}-{lease.token}", READ, key=key), decide_call, (1, 1), AT)


def recover(store: Store, **data: object) -> None:
    store.leases.write_change(held(store), RunChange(AT, (Fact("recovery.ended", {"doubts": [], **data}),)))


def test_only_takeovers_in_a_row_count(store: Store) -> None:
    made(store)
    take_over(store, 1)
    assert count_takeovers(store, "run-1") == 0  # it was queued
    take_over(store, 3)
    assert count_takeovers(store, "run-1") == 3
    parked = RunStatus(state=RunState.WAITING, reason=WaitReason.HUMAN)
    store.leases.write_change(held(store), RunChange(AT, (Fact("run.waiting"),), parked))
    take_over(store, 1)
    assert count_takeovers(store, "run-1") == 0  # a person continued it
    take_over(store, 1)
    assert count_takeovers(store, "run-1") == 1


def test_a_new_call_counts_and_the_same_one_again_does_not(store: Store) -> None:
    made(store)
    take_over(store, 2)
    call(store, "first")
    take_over(store, 2)
    assert count_takeovers(store, "run-1") == 2
    call(store, "first")
    take_over(store, 1)
    assert count_takeovers(store, "run-1") == 3
    call(store, "second")
    assert count_takeovers(store, "run-1") == 0


def test_a_commit_counts(store: Store) -> None:
    made(store)
    take_over(store, 3)
    recover(store, commits=2)
    assert count_takeovers(store, "run-1") == 1
    take_over(store, 1)
    recover(store)
    assert count_takeovers(store, "run-1") == 2


def test_a_turn_that_ended_well_counts(store: Store) -> None:
    made(store)
    take_over(store, 3)
    turn = Turn(
        run_id="run-1",
        number=1,
        step=2,
        attempt=3,
        role="work",
        agent="scripted",
        session=None,
        prompt="",
        started_at=AT,
    )
    store.leases.write_change(held(store), RunChange(AT, (Fact("turn.launched"),), turn=turn))
    assert count_takeovers(store, "run-1") == 2
    store.leases.write_change(held(store), RunChange(AT, (Fact("turn.launched"),), turn=turn._replace(ended_at=AT + 1)))
    assert count_takeovers(store, "run-1") == 0
