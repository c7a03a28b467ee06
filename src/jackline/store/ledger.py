"""Writes of the ledger: intents before the answer, outcomes with their receipts. `domain.call_gate` decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from jackline.crash_points import crash_point
from jackline.domain.call_gate import Admission, History, Intent, needs_synced_intent, needs_synced_outcome
from jackline.domain.events import Fact
from jackline.domain.events import place as place_event
from jackline.domain.records import Call, Lease, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.domain.transitions import TransitionRefused, next_call
from jackline.errors import NotFound, Refused
from jackline.named import NamedTuple, stored_dict
from jackline.store import blobs, call_history, ledger_events, redaction, rows
from jackline.store.blobs import StoredText
from jackline.store.driver import RetryTransaction, Row, Statements, clean
from jackline.store.models import Settlement
from jackline.store.parts import RunHead, StorePart, build_lease_values, lock_fenced_head, write_event

_ADMITTED = {
    Decision.ALLOW: (CallState.PREPARED, "call.prepared"),
    Decision.DENY: (CallState.DENIED, "call.denied"),
    Decision.ASK: (CallState.DENIED, "call.asked"),
    Decision.STORED: (CallState.DONE, "call.stored"),
}
_RECOVERY = "recovery"
_LEFT_OPEN = frozenset({"abandon", "doubt"})
_CLOSED = frozenset({Decision.DENY, Decision.STORED})
_CALLS_HELD = 64
_LONGEST_HELD = 65_536  # characters of input; a longer one is synced at once
_AGENT = "agent"  # the origin of what an agent reports

Decide = Callable[[Intent, History], Admission]


class LedgerStore(StorePart):
    """The part of the store that gates write through."""

    @cached_property
    def _cache(self) -> WriteCache:
        return WriteCache()

    def admit(
        self, lease: Lease, intent: Intent, decide: Decide, place: tuple[int, int], at: int
    ) -> tuple[Call, Admission, Receipt | None]:
        """Write the intent and the decision of `decide` in one transaction; `place` is (turn, step).

        `decide` may be called more than once, so it must be pure. A read or a local call repeats freely, unless its
        rule asks a person or its replay is `relaunch`: its history has no earlier calls, and its occurrence is 0.
        A stored result is returned whole, as a receipt also if it is that of a finished call that is not an effect.
        """
        clean_intent = redaction.redact_intent(self.redactor, intent)
        text = blobs.split_text(clean(clean_intent.input))
        can_hold = len(text.whole or text.shown) <= _LONGEST_HELD
        head, call, admission, receipt = self._driver.write(
            lambda one: self._admit(one, lease, clean_intent, text, decide, place, at),
            synced=not can_hold or needs_synced_intent(intent.rule),
        )
        crash_point("call.intent.committed")
        self._cache.put_head(lease, head)
        if can_hold and call.state is CallState.PREPARED:
            self._cache.put_call(call, text)
        return call, admission, receipt

    def _admit(
        self,
        statements: Statements,
        lease: Lease,
        intent: Intent,
        text: StoredText,
        decide: Decide,
        place: tuple[int, int],
        at: int,
    ) -> tuple[RunHead, Call, Admission, Receipt | None]:
        head = self._cache.get_head(lease) or lock_fenced_head(statements, lease)
        most = self._store.load_spec(statements, lease.run_id).limits.calls
        known, occurrence = call_history.read_history(statements, lease, intent, head, most)
        admission = decide(intent, known)
        call = _build_call(lease, intent, admission, place, occurrence, at, text)
        moved = self._add_call(statements, lease, head, call, text)
        crash_point("call.intent.begun")
        return moved, call, admission, _find_stored_result(statements, lease, known, admission)

    def _add_call(self, statements: Statements, lease: Lease, head: RunHead, call: Call, text: StoredText) -> RunHead:
        fact = ledger_events.build_intended(_ADMITTED[call.decision][1], call)
        moved = self._move_head(statements, lease, head, fact, call.prepared_at, "agent", calls=head.calls + 1)
        if statements.run("add_call", {**rows.call_values(call), "number": moved.calls}) == 0:
            raise Refused(f"call {call.id} is in the ledger already")
        blobs.write_blob(statements, lease.run_id, text)
        return moved

    def find_call(self, lease: Lease, call_id: str) -> Call | None:
        """A call of the lease's run: from memory if this process has it open, else from the database."""
        held = self._cache.get_call(lease, call_id)
        return self._store.calls.get(lease.run_id, call_id) if held is None else held.call

    def settle(self, lease: Lease, settlement: Settlement) -> Call:
        """Write an outcome; an effect that succeeded or happened gets its receipt in the same transaction."""
        redacted = redaction.redact_settlement(self.redactor, settlement)
        held = self._cache.get_call(lease, settlement.call_id)
        synced = held is None or settlement.origin != _AGENT or needs_synced_outcome(held.call)
        head, call = self._driver.write(lambda one: self._settle(one, lease, redacted, held), synced=synced)
        self._cache.drop_call(settlement.call_id)
        crash_point("call.outcome.committed")
        self._cache.put_head(lease, head)
        if settlement.origin != _AGENT:
            crash_point("call.judged")
        return call

    def _settle(
        self, statements: Statements, lease: Lease, settlement: Settlement, held: HeldCall | None
    ) -> tuple[RunHead, Call]:
        head = self._cache.get_head(lease)
        if head is not None and held is not None:
            before = held.call
        else:
            head = head or lock_fenced_head(statements, lease)
            if held is not None and find_call_row(statements, lease.run_id, held.call.id) is None:
                # The database server died before the intent was synced: it is written again, at the chain's real end.
                head = self._add_call(statements, lease, head, held.call, held.text)
            before = read_call(statements, lease.run_id, settlement.call_id)
        text = blobs.split_text(clean(settlement.output))
        call = _apply_settlement(before, settlement, text)
        external, origin = clean(settlement.external_id), clean(settlement.origin)
        proves = call.call_class is CallClass.EFFECT and call.state is CallState.DONE
        receipt = write_receipt(statements, call, external, origin, settlement.at) if proves else None
        fact = ledger_events.build_settled(call, origin, external, receipt=receipt)
        moved = self._move_head(statements, lease, head, fact, settlement.at, origin, calls=head.calls)
        # Whether a recovery found the call without an outcome; this count bounds how often it is made again.
        open_until_now = before.state is CallState.PREPARED and settlement.change in _LEFT_OPEN
        cut_off = open_until_now and settlement.origin == _RECOVERY
        if statements.run("settle_call", build_outcome(call, before.state, cut_off=cut_off)) == 0:
            self._cache.drop_head(lease.run_id)
            raise RetryTransaction
        blobs.write_blob(statements, lease.run_id, text)
        crash_point("call.outcome.begun")
        return moved, call

    def _move_head(
        self, statements: Statements, lease: Lease, head: RunHead, fact: Fact, at: int, actor: str, *, calls: int
    ) -> RunHead:
        """Write the event and move the run's head, if it has not moved since and the lease is still ours.

        The head first: on PostgreSQL two gates of one run meet at its row, and the second one finds it changed.
        """
        event = place_event(fact, lease.run_id, head.event_seq + 1, at, actor, head.chain_head)
        values = {
            **build_lease_values(lease),
            "previous": head.chain_head,  # not its number, which others reuse after a loss of the newest events
            "event_seq": event.seq,
            "chain_head": event.hash,
            "calls": calls,
            "at": at,
        }
        if statements.run("move_head", values) == 0:
            self._cache.drop_head(lease.run_id)
            lock_fenced_head(statements, lease)
            raise RetryTransaction
        write_event(statements, event)
        return head._replace(event_seq=event.seq, chain_head=event.hash, calls=calls)


class HeldCall(NamedTuple):
    """An open call, with its whole input: enough to write it again."""

    call: Call
    text: StoredText


class WriteCache:
    """The heads of the runs that this process works on, and its open calls, so that it need not read them back.

    A cached value is only a hint: every write compares it with the database. A stale hint costs one more round: the
    transaction is rolled back and run again with fresh values.
    """

    def __init__(self) -> None:
        self._heads: dict[str, tuple[Lease, RunHead]] = {}
        self._calls: dict[str, HeldCall] = {}

    def get_head(self, lease: Lease) -> RunHead | None:
        """The head of the lease's run after our last write."""
        known = self._heads.get(lease.run_id)
        return known[1] if known is not None and known[0] == lease else None

    def put_head(self, lease: Lease, head: RunHead) -> None:
        """Keep a head; only after the commit."""
        self._heads[lease.run_id] = (lease, head)

    def get_call(self, lease: Lease, call_id: str) -> HeldCall | None:
        """An open call of the lease's run as we wrote it."""
        held = self._calls.get(call_id)
        return held if held is not None and held.call.run_id == lease.run_id else None

    def put_call(self, call: Call, text: StoredText) -> None:
        """Hold an open call; only after the commit."""
        if len(self._calls) >= _CALLS_HELD:
            del self._calls[next(iter(self._calls))]  # the oldest
        self._calls[call.id] = HeldCall(call, text)

    def drop_call(self, call_id: str) -> None:
        """Forget a call, because it is settled."""
        self._calls.pop(call_id, None)

    def drop_head(self, run_id: str) -> None:
        """Forget the head of the run, because it may be stale; calls are then compared with the database, too."""
        self._heads.pop(run_id, None)


def find_call_row(statements: Statements, run_id: str, call_id: str) -> Row | None:
    """The row of a call of this run."""
    return statements.one("get_call", {"run_id": clean(run_id), "id": clean(call_id)})


def read_call(statements: Statements, run_id: str, call_id: str) -> Call:
    """The call of this run; NotFound if there is none."""
    row = find_call_row(statements, run_id, call_id)
    if row is None:
        raise NotFound(call_id, what="call", hint=f"jackline show {run_id}")
    return rows.parse_call(row)


def next_state(call_id: str, state: CallState, change: str) -> CallState:
    """The state after the change; Refused if the transition table has none."""
    try:
        return next_call(state, change)
    except TransitionRefused as error:
        raise Refused(f"call {call_id} is settled: {error}") from error


def write_receipt(statements: Statements, call: Call, external_id: str, origin: str, at: int) -> Receipt | bool:
    """The receipt of an effect; False if its key has one already, which the event then says."""
    receipt = _build_receipt(call, external_id, origin, at)
    return receipt if statements.run("add_receipt", stored_dict(receipt)) else False


def _build_receipt(call: Call, external_id: str, origin: str, at: int) -> Receipt:
    return Receipt(
        call_id=call.id,
        run_id=call.run_id,
        key=call.key,
        target=call.target,
        rule=call.rule,
        output=call.output,
        external_id=external_id,
        origin=origin,
        at=at,
    )


def build_outcome(call: Call, before: CallState, *, cut_off: bool = False) -> dict[str, object]:
    """The parameters that settle a call; `before` is the state that it must have in the database."""
    return {
        "run_id": call.run_id,
        "id": call.id,
        "before": str(before),
        "state": str(call.state),
        "output": call.output,
        "output_ref": call.output_ref,
        "exit_code": call.exit_code,
        "reason": call.reason,
        "reason_code": call.reason_code,
        "finished_at": call.finished_at,
        "duration_ms": call.duration_ms,
        "external": call.external,
        "cut_off": int(cut_off),
    }


def _apply_settlement(call: Call, settlement: Settlement, text: StoredText) -> Call:
    """The call after its settlement; columns that the settlement does not name stay as the agent reported them."""
    state = next_state(call.id, call.state, settlement.change)
    kept = text if text.shown else StoredText(shown=call.output, ref=call.output_ref)
    return call._replace(
        state=state,
        output=kept.shown,
        output_ref=kept.ref,
        exit_code=call.exit_code if settlement.exit_code is None else settlement.exit_code,
        reason=clean(settlement.reason) or call.reason,
        reason_code=str(settlement.reason_code) if settlement.reason else call.reason_code,
        finished_at=None if state is CallState.IN_DOUBT else settlement.at,
        duration_ms=call.duration_ms if settlement.duration_ms is None else settlement.duration_ms,
        external=clean(settlement.external) or call.external,
    )


def _find_stored_result(statements: Statements, lease: Lease, known: History, admission: Admission) -> Receipt | None:
    """The stored result that answers the call, whole: of a receipt, or of a finished call that is not an effect."""
    if admission.decision is not Decision.STORED or admission.original is None:
        return None
    receipt = known.receipt
    place = (lease.run_id, admission.original) if receipt is None else (receipt.run_id, receipt.call_id)
    row = statements.one("get_call", {"run_id": place[0], "id": place[1]})
    if row is None:
        return receipt
    call = rows.parse_call(row)
    output = blobs.read_whole(statements, call.run_id, call.output, call.output_ref)
    if receipt is not None:
        return receipt if call.output_ref is None else receipt._replace(output=output)
    return _build_receipt(call, "", "agent", call.prepared_at)._replace(output=output)


def _build_call(
    lease: Lease,
    intent: Intent,
    admission: Admission,
    place: tuple[int, int],
    occurrence: int,
    at: int,
    text: StoredText,
) -> Call:
    """A new call, with storable text."""
    rule, decision = intent.rule, admission.decision
    return Call(
        id=clean(intent.call_id),
        run_id=lease.run_id,
        attempt=lease.token,
        turn=place[0],
        step=place[1],
        occurrence=occurrence,
        tool=clean(intent.tool),
        call_class=rule.call_class,
        replay=rule.replay,
        decision=decision,
        rule=clean(rule.name),
        door=clean(intent.door),
        key=intent.key,
        target=clean(intent.target),
        input=text.shown,
        state=_ADMITTED[decision][0],
        prepared_at=at,
        agent_call=clean(intent.agent_call),
        reason=clean(admission.reason),
        reason_code=str(admission.reason_code),
        original=admission.original,
        parent_id=intent.parent_id,
        input_ref=text.ref,
        external=clean(intent.external),
        # An asked call stays open until a person has answered it.
        finished_at=at if decision in _CLOSED else None,
    )
