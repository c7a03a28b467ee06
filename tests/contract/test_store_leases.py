"""Leases: one worker at a time, stale ones are refused everywhere, and only a dead or late one is taken over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.records import Check, Checkpoint, Lease, Notice, RunStatus, SessionUse, Turn
from jackline.domain.states import Failure, Phase, RunState, WaitReason
from jackline.errors import Busy, CancelWanted, Fenced, Refused
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, READ, FakeClock, begun, by_hand, claimed, data_of, intent, made, owner


def test_a_claim_begins_an_attempt(store: Store) -> None:
    made(store)
    lease, run = store.leases.claim("run-1", owner(), LEASE_MS, AT + 1)
    assert lease == Lease("run-1", "worker-1", 1)
    assert (run.status.state, run.status.phase, run.status.attempt) == (RunState.RUNNING, Phase.RECOVERING, 1)
    assert (run.owner, run.started_at) == ("worker-1", AT + 1)
    (attempt,) = store.records.list_attempts("run-1")
    assert (attempt.token, attempt.host, attempt.pid, attempt.ended_at) == (1, "host-1", 4242, None)
    event = store.records.list_events("run-1")[-1]
    assert event.kind == "run.claimed"
    assert data_of(event) == {"host": "host-1", "owner": "worker-1", "takeover": False, "token": 1}


def test_a_claim_returns_the_run_as_it_is_stored(store: Store) -> None:
    made(store)
    lease, run = store.leases.claim("run-1", owner("worker\x00-1"), LEASE_MS, AT + 1)
    assert run == store.runs.get("run-1")
    store.leases.renew(lease, LEASE_MS, 500)
    waits = RunStatus(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=AT + 9, windows=2, review_round=1)
    store.leases.write_change(lease, RunChange(AT + 2, status=waits))
    lease, run = store.leases.claim("run-1", owner(), LEASE_MS, AT + 3)
    assert run == store.runs.get("run-1")
    store.runs.request_cancel("run-1", AT + 4, "notice-1")
    failed = RunStatus(state=RunState.FAILED, failure=Failure.TIMEOUT, detail="too slow", step=3)
    store.leases.write_change(lease, RunChange(AT + 5, status=failed))
    _, run = store.leases.claim("run-1", owner(), LEASE_MS, AT + 6)
    assert run == store.runs.get("run-1")


def test_a_live_lease_keeps_others_out(store: Store, clock: FakeClock) -> None:
    begun(store)
    clock.now += LEASE_MS - 1
    with pytest.raises(Busy, match="run-1 is being worked on by worker-1"):
        claimed(store, name="worker-2")
    assert len(store.records.list_attempts("run-1")) == 1


def test_a_lease_that_ran_out_is_taken_over(store: Store, clock: FakeClock) -> None:
    begun(store)
    clock.now += LEASE_MS
    lease = claimed(store, name="worker-2")
    assert lease.token == 2
    first, second = store.records.list_attempts("run-1")
    assert (first.outcome, first.ended_at, second.outcome) == ("lost", AT + 1, None)
    assert '"takeover":true' in store.records.list_events("run-1")[-1].data


def test_a_renewed_lease_does_not_run_out(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    clock.now += LEASE_MS - 1
    assert store.leases.renew(lease, LEASE_MS, 500) is False
    clock.now += LEASE_MS - 1
    with pytest.raises(Busy):
        claimed(store, name="worker-2")
    run = store.runs.get("run-1")
    assert run is not None
    assert run.status.spent.wall_ms == 500


def test_a_reboot_frees_every_lease(store: Store, clock: FakeClock) -> None:
    begun(store)
    clock.boot, clock.now = "boot-2", 5
    assert claimed(store, name="worker-2").token == 2


def test_a_dead_attempt_is_taken_over_at_once(store: Store) -> None:
    begun(store)
    lease, _ = store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 2, dead=1)
    assert lease.token == 2


def test_another_attempt_s_death_frees_nothing(store: Store) -> None:
    begun(store)
    store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 2, dead=1)
    with pytest.raises(Busy):
        store.leases.claim("run-1", owner("worker-3"), LEASE_MS, AT + 3, dead=1)


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELLED])
def test_nothing_reopens_what_ended_well_or_was_cancelled(store: Store, state: RunState) -> None:
    store.leases.write_change(begun(store), RunChange(AT, status=RunStatus(state=state)))
    with pytest.raises(Refused, match=f"run run-1 (has|was) {state} and cannot be resumed: fork it"):
        claimed(store)


def test_a_failed_run_is_reopened_without_its_cancel_request(store: Store) -> None:
    lease = begun(store)
    store.runs.request_cancel("run-1", AT, "notice-1")
    failed = RunStatus(state=RunState.FAILED, failure=Failure.TIMEOUT, detail="too slow", step=3)
    store.leases.write_change(lease, RunChange(AT + 2, status=failed))
    _, run = store.leases.claim("run-1", owner(), LEASE_MS, AT + 3)
    assert (run.status.state, run.status.failure, run.status.detail) == (RunState.RUNNING, None, "")
    assert (run.status.cancel_requested, run.status.step, run.finished_at) == (False, 3, None)


def test_a_run_that_was_asked_to_end_is_not_put_to_wait(store: Store) -> None:
    """Else the request would sleep with the run."""
    lease = begun(store)
    store.runs.request_cancel("run-1", AT, "notice-1")
    before = store.runs.get("run-1")
    with pytest.raises(CancelWanted):
        store.leases.write_change(
            lease, RunChange(AT, status=RunStatus(state=RunState.WAITING, reason=WaitReason.PAUSED))
        )
    assert store.runs.get("run-1") == before


def test_a_taken_over_run_keeps_its_cancel_request(store: Store) -> None:
    begun(store)
    store.runs.request_cancel("run-1", AT, "notice-1")
    _, run = store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 3, dead=1)
    assert run.status.cancel_requested
    assert store.leases.is_cancel_requested("run-1") is True
    assert store.leases.is_cancel_requested("nobody") is False


_TURN = Turn("run-1", 1, 2, 1, "work", "claude", "session-1", "mend it", AT, spent=Spent(tokens_input=5, usd_micros=7))
_CHECK = Check("run-1", 3, 1, "pytest -q", AT)
_NOTICE = Notice("notice-1", "run-1", "run.waiting", "it waits", "for you", "", AT)
_CHECKPOINT = Checkpoint("run-1", 2, "step", "{}", "12", AT)

_STALE_WRITES: dict[str, Callable[[Store, Lease], object]] = {
    "renew": lambda store, lease: store.leases.renew(lease, LEASE_MS, 9),
    "note_warden": lambda store, lease: store.leases.record_warden(lease, 1, 2),
    "write": lambda store, lease: store.leases.write_change(
        lease, RunChange(AT, (Fact("late"),), turn=_TURN, notice=_NOTICE)
    ),
    "finish": lambda store, lease: store.leases.write_change(
        lease, RunChange(AT, status=RunStatus(state=RunState.SUCCEEDED))
    ),
    "admit": lambda store, lease: store.ledger.admit(lease, intent("late"), decide_call, (1, 1), AT),
    "settle": lambda store, lease: store.ledger.settle(lease, Settlement("call-1", "succeed", AT)),
}


@pytest.mark.parametrize("name", _STALE_WRITES)
@pytest.mark.parametrize("why", ["taken over", "ended", "another owner", "no such run"])
def test_a_stale_lease_changes_nothing(store: Store, clock: FakeClock, name: str, why: str) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=READ), decide_call, (1, 1), AT)
    match why:
        case "taken over":
            clock.now += LEASE_MS
            claimed(store, name="worker-2")
        case "ended":
            store.leases.write_change(lease, RunChange(AT, status=RunStatus(state=RunState.FAILED)))
        case "another owner":
            lease = lease._replace(owner="worker-9")
        case "no such run":
            lease = lease._replace(run_id="nobody")
    before = _everything(store)
    with pytest.raises(Fenced):
        _STALE_WRITES[name](store, lease)
    assert _everything(store) == before


def _everything(store: Store) -> list[object]:
    names = ("runs", "events", "attempts", "steps", "turns", "calls", "receipts", "notices")
    return [sorted(by_hand(store, f"SELECT * FROM {name}"), key=repr) for name in names]


def test_a_write_puts_everything_down_together(store: Store) -> None:
    lease = begun(store)
    life = RunStatus(RunState.RUNNING, phase=Phase.WORKING, step=2, turn=1, spent=Spent(steps=2, iterations=1))
    run = store.leases.write_change(
        lease,
        RunChange(
            AT + 5,
            (Fact("turn.started", {"turn": 1}), Fact("note")),
            life,
            turn=_TURN,
            check=_CHECK,
            session=SessionUse("claude", "session-1"),
            checkpoint=_CHECKPOINT,
            notice=_NOTICE,
            actor="heart",
        ),
    )
    assert run == store.runs.get("run-1")
    assert (run.status.phase, run.status.spent.steps, run.status.attempt, run.updated_at) == (
        Phase.WORKING,
        2,
        1,
        AT + 5,
    )
    assert [event.kind for event in store.records.list_events("run-1", after=2)] == ["turn.started", "note"]
    assert store.records.list_turns("run-1") == [_TURN]
    assert store.records.list_checks("run-1") == [_CHECK]
    assert store.records.get_sessions("run-1") == {"claude": "session-1"}
    assert store.records.list_checkpoints("run-1") == [_CHECKPOINT]
    assert (
        store.records.list_notices("run-1")
        == store.records.list_notices()
        == [_NOTICE._replace(chain_head=run.chain_head)]
    )


def test_records_are_updated_by_their_number(store: Store) -> None:
    lease = begun(store)
    store.leases.write_change(
        lease, RunChange(AT, turn=_TURN, check=_CHECK, session=SessionUse("claude", "a"), checkpoint=_CHECKPOINT)
    )
    ended = _TURN._replace(ended_at=AT + 9, exit_code=1, failure="crashed", last_message="bye", raw_lines=3)
    passed = _CHECK._replace(ended_at=AT + 9, exit_code=0, output="ok", tree="abc")
    store.leases.write_change(lease, RunChange(AT, turn=ended, check=passed, session=SessionUse("claude", "b")))
    store.leases.write_change(lease, RunChange(AT, turn=ended._replace(number=2)))
    assert store.records.list_turns("run-1") == [ended, ended._replace(number=2)]
    assert store.records.list_checks("run-1") == [passed]
    assert store.records.get_sessions("run-1") == {"claude": "b"}


def test_what_others_change_is_never_overwritten(store: Store) -> None:
    lease = begun(store)
    _, run = store.ledger.admit(lease, intent(rule=READ), decide_call, (1, 1), AT)[0], store.runs.get("run-1")
    assert run is not None
    old = run.status
    store.runs.request_cancel("run-1", AT, "notice-1")
    store.leases.renew(lease, LEASE_MS, 250)
    store.ledger.admit(lease, intent("call-2", READ), decide_call, (1, 1), AT)
    fresh = store.leases.write_change(lease, RunChange(AT, status=old._replace(step=1, phase=Phase.WORKING)))
    assert (fresh.status.cancel_requested, fresh.status.spent.calls, fresh.status.spent.wall_ms) == (True, 2, 250)
    assert fresh == store.runs.get("run-1")


@pytest.mark.parametrize(
    ("life", "outcome", "finished"),
    [
        (RunStatus(state=RunState.SUCCEEDED), "succeeded", True),
        (RunStatus(state=RunState.FAILED, failure=Failure.PROOF), "failed", True),
        (RunStatus(state=RunState.CANCELLED), "cancelled", True),
        (RunStatus(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=AT + 9), "limit", False),
    ],
)
def test_the_end_of_an_attempt_gives_the_lease_back(
    store: Store, life: RunStatus, outcome: str, finished: bool
) -> None:
    told = {"reason": life.reason, "wake_at": life.wake_at, "failure": life.failure, "proof": life.proof}
    run = store.leases.write_change(begun(store), RunChange(AT + 7, (Fact(f"run.{life.state}", told),), life))
    assert run == store.runs.get("run-1")
    assert (run.owner, run.finished_at) == (None, AT + 7 if finished else None)
    (attempt,) = store.records.list_attempts("run-1")
    assert (attempt.outcome, attempt.ended_at) == (outcome, AT + 7)
    assert by_hand(store, "SELECT lease_boot, lease_until FROM runs") == [(None, None)]
    assert store.verify.check_all() == []


def test_a_running_run_is_not_put_back_in_the_queue(store: Store) -> None:
    lease = begun(store)
    with pytest.raises(Refused, match="cannot become queued"):
        store.leases.write_change(lease, RunChange(AT, (Fact("odd"),), RunStatus(state=RunState.QUEUED)))
    assert len(store.records.list_events("run-1")) == 2


def test_steps_are_numbered_over_all_attempts(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    store.leases.write_change(
        lease, RunChange(AT + 2, status=RunStatus(RunState.RUNNING, phase=Phase.RECOVERING, step=1))
    )
    store.leases.write_change(lease, RunChange(AT + 3, status=RunStatus(RunState.RUNNING, phase=Phase.WORKING, step=2)))
    store.leases.write_change(lease, RunChange(AT + 4, status=RunStatus(RunState.RUNNING, phase=Phase.WORKING, step=2)))
    clock.now += LEASE_MS
    second = claimed(store, name="worker-2")
    store.leases.write_change(
        second, RunChange(AT + 6, status=RunStatus(RunState.RUNNING, phase=Phase.PROVING, step=3))
    )
    failed = _CHECK._replace(exit_code=1, attempt=2)
    store.leases.write_change(second, RunChange(AT + 7, status=RunStatus(state=RunState.FAILED, step=3), check=failed))
    rows = by_hand(store, "SELECT step, attempt, kind, started_at, ended_at, outcome FROM steps ORDER BY step")
    assert rows == [
        (1, 1, "recovery", AT + 2, AT + 3, "ended"),
        (2, 1, "turn", AT + 3, AT + 1, "lost"),
        (3, 2, "check", AT + 6, AT + 7, "refuted"),
    ]


def test_the_warden_is_remembered_with_its_attempt(store: Store) -> None:
    lease = begun(store)
    store.leases.record_warden(lease, 77, 123456)
    (attempt,) = store.records.list_attempts("run-1")
    assert (attempt.warden_pid, attempt.warden_started) == (77, 123456)


def test_a_real_clock_counts_leases_too(opened: Callable[..., Store]) -> None:
    """Without an injected clock: the boot clock on SQLite, the database's clock on PostgreSQL."""
    store = opened(lease_clock=None)
    lease = begun(store)
    with pytest.raises(Busy):
        claimed(store, name="worker-2")
    store.leases.renew(lease, 0, 0)
    assert claimed(store, name="worker-2").token == 2
