"""The queue: which runs may start, in which order, and what becomes of those that never can; on every backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from jackline.domain.events import Fact
from jackline.domain.ids import repository_id
from jackline.domain.records import Run, RunStatus
from jackline.domain.states import Failure, RunState, WaitReason
from jackline.errors import NotFound, NotStartable, Refused
from jackline.store.models import QueueOptions, RunChange
from jackline.store.store import Store
from tests.support.stores import AT, HERE, LEASE_MS, claimed, data_of, made, new_run, owner

SUCCEEDED = RunStatus(state=RunState.SUCCEEDED)
FAILED = RunStatus(state=RunState.FAILED, failure=Failure.AGENT_ERROR)


def put(store: Store, run_id: str, at: int = AT, **options: Any) -> Run:
    return store.runs.create(new_run(run_id), at, QueueOptions(**options))[0]


def startable(store: Store, at: int = AT) -> list[str]:
    return [entry.run_id for entry in store.queue.list_startable(at)]


def finish(store: Store, run_id: str, status: RunStatus = SUCCEEDED) -> None:
    change = RunChange(AT + 2, (Fact(f"run.{status.state}"),), status)
    store.leases.write_change(claimed(store, run_id), change)


def notice_ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"notice-{next(numbers)}"


def test_runs_start_by_priority_then_by_age(store: Store) -> None:
    put(store, "late", AT + 1)
    put(store, "early")
    put(store, "urgent", AT + 2, priority=5)
    put(store, "some-day", AT - 1, priority=-1)
    assert startable(store) == ["urgent", "early", "late", "some-day"]
    assert [entry.run_id for entry in store.queue.list_startable(AT, limit=2)] == ["urgent", "early"]


def test_a_run_outside_of_the_queue_belongs_to_its_creator(store: Store) -> None:
    made(store)
    assert startable(store) == []
    assert store.queue.get("run-1") is None


def test_a_started_run_is_not_startable(store: Store) -> None:
    put(store, "run-1")
    lease = claimed(store)
    assert startable(store) == []
    parked = RunStatus(state=RunState.WAITING, reason=WaitReason.APPROVAL)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), parked))
    assert startable(store) == []


def test_a_start_time_delays_the_run(store: Store) -> None:
    put(store, "run-1", not_before=AT + 10)
    assert startable(store, AT + 9) == []
    assert startable(store, AT + 10) == ["run-1"]


def test_a_held_run_starts_when_it_is_released(store: Store) -> None:
    put(store, "run-1", held=True)
    put(store, "run-2")
    store.queue.hold("run-2", at=AT)
    store.queue.hold("run-2", at=AT + 1)
    assert startable(store) == []
    store.queue.release("run-1", at=AT)
    store.queue.release("run-2", at=AT)
    store.queue.release("run-2", at=AT)
    assert startable(store) == ["run-1", "run-2"]
    kinds = [(event.kind, event.actor) for event in store.records.list_events("run-2")]
    assert kinds == [("run.created", "engine"), ("run.held", "person"), ("run.released", "person")]
    assert store.verify.check_all() == []


def test_only_a_queued_run_can_be_held(store: Store) -> None:
    made(store)
    with pytest.raises(Refused, match="not in the queue"):
        store.queue.hold("run-1", at=AT)
    claimed(store)
    with pytest.raises(Refused, match="is running: only a run that has not started"):
        store.queue.hold("run-1", at=AT)
    put(store, "a-queued")
    with pytest.raises(NotFound):
        store.queue.hold("a-queued", "nobody", at=AT)
    assert startable(store) == ["a-queued"]


def test_a_key_gives_the_run_that_has_not_ended(store: Store) -> None:
    put(store, "run-1", dedupe="nightly")
    run, is_new = store.runs.create(new_run("run-2"), AT, QueueOptions(dedupe="nightly"))
    assert (run.id, is_new) == ("run-1", False)
    assert store.runs.get("run-2") is None
    assert store.runs.is_known("run-2", "nightly")
    finish(store, "run-1", FAILED)
    assert not store.runs.is_known("run-2", "nightly")
    assert put(store, "run-2", dedupe="nightly").id == "run-2"
    assert put(store, "run-3", dedupe="other").id == "run-3"
    assert put(store, "run-4", dedupe="nightly").id == "run-2"


def test_a_dependency_must_exist_and_nothing_is_created_without_it(store: Store) -> None:
    made(store)
    with pytest.raises(NotFound, match="nobody"):
        put(store, "run-2", depends_on=("run-1", "nobody"), dedupe="key")
    assert store.runs.get("run-2") is None
    assert put(store, "run-3", dedupe="key").number == 2


def test_a_run_starts_when_all_its_dependencies_have_succeeded(store: Store) -> None:
    for name in ("first", "second"):
        made(store, name)
    put(store, "last", depends_on=("second", "first", "first"))
    assert startable(store) == []
    finish(store, "first")
    assert startable(store) == []
    finish(store, "second")
    assert startable(store) == ["last"]
    assert store.queue.cancel_unreachable(AT, notice_ids()) == []


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_failed_dependency_cancels_all_that_wait_for_it(store: Store, end: str) -> None:
    made(store, "first")
    put(store, "b-next", depends_on=("first",))
    put(store, "a-last", depends_on=("b-next",))
    put(store, "other")
    if end == "failed":
        finish(store, "first", FAILED)
    else:
        store.runs.request_cancel("first", AT, "notice-0")
    ended = store.queue.cancel_unreachable(AT + 5, notice_ids())
    assert [(run.id, run.status.state) for run in ended] == [
        ("b-next", RunState.CANCELLED),
        ("a-last", RunState.CANCELLED),
    ]
    was = "failed" if end == "failed" else "was cancelled"
    assert ended[0].status.detail == f"it depends on run first, which {was}"
    last = store.records.list_events("a-last")[-1]
    assert (last.kind, last.actor, data_of(last)) == (
        "run.cancelled",
        "engine",
        {"by": "dependency", "run": "b-next"},
    )
    (notice,) = store.records.list_notices("a-last")
    assert (notice.kind, notice.body) == ("run.cancelled", "it depends on run b-next, which was cancelled")
    assert startable(store) == ["other"]
    assert store.queue.cancel_unreachable(AT + 6, notice_ids()) == []
    assert store.verify.check_all() == []


def test_a_started_run_is_not_cancelled_for_its_dependency(store: Store) -> None:
    made(store, "first")
    put(store, "next", depends_on=("first",))
    claimed(store, "next")  # a person resumed it
    finish(store, "first", FAILED)
    assert store.queue.cancel_unreachable(AT, notice_ids()) == []


def test_a_run_that_starts_meanwhile_is_not_cancelled(opened: Callable[..., Store]) -> None:
    store, service = opened(), opened()
    made(store, "first")
    put(store, "next", depends_on=("first",))
    finish(store, "first", FAILED)

    def start_it() -> str:  # between the look and the transaction that cancels
        lease = claimed(service, "next")
        parked = RunStatus(state=RunState.WAITING, reason=WaitReason.APPROVAL)
        service.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), parked))
        service.driver.write(
            lambda one: one.run(
                "queue_waiting_run",
                {"to": "queued", "id": "next", "state": "waiting", "at": AT, "event_seq": 4, "chain_head": "x"},
            )
        )
        return "notice-1"

    assert store.queue.cancel_unreachable(AT, start_it) == []
    run = store.runs.get("next")
    assert run is not None
    assert (run.status.state, run.status.attempt) == (RunState.QUEUED, 1)


def test_a_batch_starts_no_more_runs_than_its_slots(store: Store) -> None:
    for number in range(5):
        put(store, f"b-{number}", batch="pages", batch_slots=2)
    put(store, "z-other")
    assert startable(store) == ["b-0", "b-1", "b-2", "b-3", "b-4", "z-other"]
    lease = claimed(store, "b-0")
    assert store.queue.count_batch_places("pages") == 1
    assert startable(store) == ["b-1", "b-2", "b-3", "b-4", "z-other"]
    claimed(store, "b-1")
    assert startable(store) == ["z-other"]
    with pytest.raises(NotStartable, match="2 runs of its batch"):
        store.leases.claim("b-2", owner(), LEASE_MS, AT, from_queue=True)

    # One that waits for a limit continues by itself and keeps its place; one that waits for a person does not.
    def park(reason: WaitReason, wake_at: int | None) -> None:
        status = RunStatus(state=RunState.WAITING, reason=reason, wake_at=wake_at)
        store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), status))

    park(WaitReason.LIMIT, AT + 1000)
    assert startable(store) == ["z-other"]
    lease = claimed(store, "b-0")
    park(WaitReason.HUMAN, None)
    assert startable(store) == ["b-2", "b-3", "b-4", "z-other"]


@pytest.mark.parametrize(
    ("options", "why"),
    [({"held": True}, "held"), ({"not_before": AT + 1}, "early"), ({"depends_on": ("first",)}, "depends on run first")],
)
def test_a_claim_from_the_queue_checks_it_again(store: Store, options: dict[str, Any], why: str) -> None:
    made(store, "first")
    put(store, "run-1", **options)
    with pytest.raises(NotStartable, match=why):
        store.leases.claim("run-1", owner(), LEASE_MS, AT, from_queue=True)
    assert claimed(store).token == 1  # a person resumes it


def test_a_claim_from_the_queue_needs_an_entry(store: Store) -> None:
    made(store)
    with pytest.raises(NotStartable, match="not in the queue"):
        store.leases.claim("run-1", owner(), LEASE_MS, AT, from_queue=True)
    put(store, "run-2")
    assert store.leases.claim("run-2", owner(), LEASE_MS, AT, from_queue=True)[0].token == 1


def test_the_runs_of_a_batch_and_the_newest_batch_of_a_repository(store: Store) -> None:
    assert store.queue.find_newest_batch(repository_id(HERE)) == ""
    for number, batch in enumerate(("old", "new", "old", "")):
        put(store, f"b-{number}", AT + number, batch=batch)
    assert store.queue.list_batch("old") == ["b-0", "b-2"]
    assert store.queue.list_batch("none") == []
    assert store.queue.find_newest_batch(repository_id(HERE)) == "old"
    assert store.queue.find_newest_batch("elsewhere") == ""
