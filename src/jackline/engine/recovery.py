"""Recovery: kill the processes of earlier attempts, and settle the open calls that need no person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.call_gate import needs_person
from jackline.domain.outcome import Usage, get_usage
from jackline.domain.states import INSISTED, CallClass, CallState, ReasonCode, Role
from jackline.engine import orphans
from jackline.store.models import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.prices import PriceTable
    from jackline.domain.records import Call, Lease, Turn
    from jackline.domain.spec import Spec
    from jackline.engine.probes.prober import Prober
    from jackline.store.store import Store


_MOST_CUT_OFF = 3  # a call that has to be made again and was interrupted this often is left to a person


def settle_open_calls(
    store: Store,
    lease: Lease,
    prober: Prober,
    now: Callable[[], int],
    *,
    host: str,
    strict: bool = False,
    gave_up: bool = False,
) -> list[Call]:
    """Settle every open call, probing effects in doubt; return those that only a person can settle.

    `gave_up`: the turn timed out; nothing crashed.
    """
    doubts = []
    hosts: dict[int, str] | None = None
    opened = store.calls.list_open(lease.run_id)
    turns = store.records.list_turns(lease.run_id) if opened else []
    readers = {turn.number for turn in turns if turn.role != Role.WORK}
    for call in opened:
        settled = _settle_interrupted(store, lease, call, now(), gave_up=gave_up, only_read=call.turn in readers)
        if settled.state is CallState.IN_DOUBT and settled.call_class is CallClass.EFFECT:
            hosts = _find_other_hosts(store, lease, host) if hosts is None else hosts
            settled = _probe_call(store, lease, settled, prober, now(), hosts.get(settled.attempt, ""))
        if needs_person(settled, strict=strict):
            doubts.append(settled)
    return doubts


def list_waiting_calls(store: Store, lease: Lease, spec: Spec, at: int, *, asks: bool = True) -> list[Call]:
    """The calls that wait for approval, after applying the default answer to those that timed out.

    `asks`: the run may wait for a person; otherwise the open questions are set aside.
    """
    if spec.approval_timeout_ms:
        store.approvals.expire(lease, at, spec.approval_answer, at - spec.approval_timeout_ms)
    if not asks:
        store.approvals.set_aside(lease, at)
    return store.calls.list_asked(lease.run_id)


def kill_orphaned_processes(store: Store, lease: Lease, tag: Mapping[str, str], host: str) -> int:
    """Kill every process that earlier attempts left on this host; return their number."""
    recorded = [
        (one.warden_pid, one.warden_started)
        for one in store.records.list_attempts(lease.run_id)
        if one.token < lease.token and (one.host, one.boot) == (host, clock.boot_id())
        if one.warden_pid is not None and one.warden_started is not None
    ]
    return orphans.kill_orphans(tag, recorded=recorded)


def count_takeovers(store: Store, run_id: str) -> int:
    """How often in a row the run was taken over from a dead process, this time included, without anything new.

    New are a call that no earlier attempt made, a commit, and a turn that ended well. The commits that this recovery
    finds are not known yet.
    """
    ended_well = (turn.attempt for turn in store.records.list_turns(run_id) if turn.ended_at and not turn.failure)
    fruitful, count = max(store.calls.find_newest_attempt(run_id), *ended_well, 0), 0
    for event in store.records.list_recovery_events(run_id):
        data = json.loads(event.data)
        if event.kind == "run.claimed":
            count = count + 1 if data["takeover"] else 0
            count = 0 if data["token"] <= fruitful else count
        elif data.get("commits"):  # an earlier attempt made them
            count = min(count, 1)
    return count


def find_interrupted_turn(store: Store, run_id: str) -> Turn | None:
    """The last turn, if its end was not stored. Only the last one can be interrupted."""
    turns = store.records.list_turns(run_id)
    return turns[-1] if turns and turns[-1].ended_at is None else None


def find_undone_calls(store: Store, run_id: str) -> tuple[str, ...]:
    """The effects that did not happen, as is known since the last turn ended, or by an answer while it ran."""
    turns = store.records.list_turns(run_id)
    if not turns:
        return ()
    undone = store.calls.list_undone(run_id, since=turns[-1].ended_at, answered_since=turns[-1].started_at)
    return tuple(call.id for call in undone)


def estimate_unreported_usage(turn: Turn, prices: PriceTable, family: str, model: str, calls: int) -> Turn:
    """A turn that was cut off after the model had answered, with an estimate of its cost if no usage was reported.

    Its tokens stay unknown: an agent that reports the totals of its session counts them with the next turn.
    """
    if not family or get_usage(turn.spent) != Usage() or not (turn.last_message or calls):
        return turn
    cost = prices.estimate_unreported(family, model, turn, calls).usd_micros
    return turn._replace(spent=turn.spent._replace(usd_micros=cost, usd_estimated=cost))


def _settle_interrupted(
    store: Store, lease: Lease, call: Call, at: int, *, gave_up: bool, only_read: bool = False
) -> Call:
    """Abandon a read or local call, of which the agent is told; put others in doubt: they may have happened.

    `only_read`: of a turn that may only read, in which nothing but an effect can be in doubt.
    """
    if call.state is not CallState.PREPARED:
        return call
    change, reason, code = "doubt", "cut off", ""
    if only_read and call.call_class is not CallClass.EFFECT:
        change = "abandon"
    elif call.call_class in {CallClass.READ, CallClass.LOCAL}:
        if gave_up:
            change, reason, code = "abandon", "gave up: the turn's time ran out", ReasonCode.GAVE_UP
        elif (
            call.replay in INSISTED
            and (times := store.calls.count_cut_off(lease.run_id, call.key) + 1) >= _MOST_CUT_OFF
        ):
            change, reason = "doubt", f"cut off {times} times"
        else:
            change = "abandon"
    return store.ledger.settle(
        lease, Settlement(call_id=call.id, change=change, at=at, origin="recovery", reason=reason, reason_code=code)
    )


def _find_other_hosts(store: Store, lease: Lease, host: str) -> dict[int, str]:
    """The hosts of the attempts that were not made on this one. A SQLite home never leaves its machine."""
    if store.driver.backend == "sqlite":
        return {}
    return {one.token: one.host for one in store.records.list_attempts(lease.run_id) if one.host != host}


def _probe_call(store: Store, lease: Lease, call: Call, prober: Prober, at: int, other_host: str) -> Call:
    settlement = prober.probe_call(call, at, other_host)
    return call if settlement is None else store.ledger.settle(lease, settlement)
