"""The ledger: intents before answers, outcomes with their receipts. `domain.gate` decides, not this."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from jackline.domain.events import Fact
from jackline.domain.events import place as place_event
from jackline.domain.gate import Admission, History, Intent
from jackline.domain.records import Call, Lease, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.domain.transitions import TransitionRefused, next_call
from jackline.errors import NotFound, Refused
from jackline.faults import reach
from jackline.store import history, rows
from jackline.store.base import RUNNING, Base, Head, fenced_head, write_event
from jackline.store.contract import Settlement
from jackline.store.driver import Again, Driver, Statements, clean
from jackline.store.memory import Memory

_PREPARED = str(CallState.PREPARED)
_IN_DOUBT = str(CallState.IN_DOUBT)
_ADMITTED = {
    Decision.ALLOW: (CallState.PREPARED, "call.prepared"),
    Decision.DENY: (CallState.DENIED, "call.denied"),
    Decision.ASK: (CallState.DENIED, "call.asked"),
    Decision.STORED: (CallState.DONE, "call.stored"),
}
_CLOSED = frozenset({Decision.DENY, Decision.STORED})

Decide = Callable[[Intent, History], Admission]


class Ledger(Base):
    """The part of the store that doors write through."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._memory = Memory()

    def admit(
        self, lease: Lease, intent: Intent, decide: Decide, place: tuple[int, int], at: int
    ) -> tuple[Call, Admission, Receipt | None]:
        """Write the intent down with what `decide` says of it, in one go; `place` is (turn, step)."""
        made = self._driver.write(lambda one: self._admit(one, lease, intent, decide, place, at))
        reach("call.intent.committed")
        head, call, admission, receipt = made
        self._memory.keep_head(lease, head)
        if call.state is CallState.PREPARED:
            self._memory.keep_call(call)
        return call, admission, receipt

    def _admit(
        self,
        statements: Statements,
        lease: Lease,
        intent: Intent,
        decide: Decide,
        place: tuple[int, int],
        at: int,
    ) -> tuple[Head, Call, Admission, Receipt | None]:
        head = self._memory.head(lease) or fenced_head(statements, lease)
        most = self._spec(statements, lease.run_id).limits.calls
        known, occurrence = history.read(statements, lease, intent, head, most)
        admission = decide(intent, known)
        call = _intended(lease, intent, admission, place, occurrence, at)
        fact = Fact(_ADMITTED[admission.decision][1], _intent_facts(call))
        moved = self._move(statements, lease, head, fact, at, "agent", calls=head.calls + 1)
        if statements.run("add_call", {**rows.call_values(call), "number": moved.calls}) == 0:
            raise Refused(f"call {intent.call_id} is in the ledger already")
        reach("call.intent.begun")
        stored = known.receipt if admission.decision is Decision.STORED else None
        return moved, call, admission, stored

    def settle(self, lease: Lease, settlement: Settlement) -> Call:
        """Write an outcome; an effect that succeeded or happened gets its receipt in the same transaction."""
        head, call = self._driver.write(lambda statements: self._settle(statements, lease, settlement))
        reach("call.outcome.committed")
        self._memory.keep_head(lease, head)
        if settlement.origin != "agent":
            reach("call.judged")
        return call

    def _settle(self, statements: Statements, lease: Lease, settlement: Settlement) -> tuple[Head, Call]:
        head = self._memory.head(lease) or fenced_head(statements, lease)
        before = self._memory.call(lease, settlement.call_id)
        before = before or known_call(statements, lease.run_id, settlement.call_id)
        call = _settled(before, settlement)
        external, origin = clean(settlement.external_id), clean(settlement.origin)
        proves = call.call_class is CallClass.EFFECT and call.state is CallState.DONE
        receipt = write_receipt(statements, call, external, origin, settlement.at) if proves else None
        fact = outcome_facts(call, external, origin, receipt=receipt)
        moved = self._move(statements, lease, head, fact, settlement.at, origin, calls=head.calls)
        if statements.run("settle_call", _outcome(call, before.state)) == 0:
            self._memory.forget(lease.run_id)
            raise Again
        reach("call.outcome.begun")
        return moved, call

    def _move(
        self, statements: Statements, lease: Lease, head: Head, fact: Fact, at: int, actor: str, *, calls: int
    ) -> Head:
        """Write the event and move the run's head, if it is still where we think it is and the lease still ours.

        The head first: on PostgreSQL two doors of one run meet at its row, and the second one finds it changed.
        """
        event = place_event(fact, lease.run_id, head.event_seq + 1, at, actor, head.chain_head)
        values = {
            "id": lease.run_id,
            "owner": lease.owner,
            "token": lease.token,
            "running": RUNNING,
            "after": head.event_seq,
            "event_seq": event.seq,
            "chain_head": event.hash,
            "calls": calls,
            "at": at,
        }
        if statements.run("move_head", values) == 0:
            self._memory.forget(lease.run_id)
            fenced_head(statements, lease)
            raise Again
        write_event(statements, event)
        return Head(head.state, head.owner, head.token, event.seq, event.hash, calls, head.parent)

    def open_calls(self, run_id: str) -> list[Call]:
        """Calls that were allowed and have no outcome, and those in doubt; oldest first."""
        values = {"run_id": clean(run_id), "prepared": _PREPARED, "in_doubt": _IN_DOUBT}
        return [rows.to_call(row) for row in self._driver.read(lambda one: one.all("open_calls", values))]

    def calls(self, run_id: str) -> list[Call]:
        """The whole ledger of a run, oldest first."""
        values = {"run_id": clean(run_id)}
        return [rows.to_call(row) for row in self._driver.read(lambda one: one.all("all_calls", values))]

    def call(self, run_id: str, call_id: str) -> Call | None:
        """One call of a run."""
        values = {"run_id": clean(run_id), "id": clean(call_id)}
        row = self._driver.read(lambda statements: statements.one("get_call", values))
        return None if row is None else rows.to_call(row)

    def receipts(self, run_id: str) -> list[Receipt]:
        """Every proof of an effect, oldest first."""
        values = {"run_id": clean(run_id)}
        return [Receipt(*row) for row in self._driver.read(lambda one: one.all("all_receipts", values))]


def known_call(statements: Statements, run_id: str, call_id: str) -> Call:
    """The call of this run; NotFound if there is none."""
    row = statements.one("get_call", {"run_id": clean(run_id), "id": clean(call_id)})
    if row is None:
        raise NotFound(call_id, what="call", hint=f"jackline show {run_id}")
    return rows.to_call(row)


def changed(call_id: str, state: CallState, change: str) -> CallState:
    """The state after the change; Refused if the table does not know it."""
    try:
        return next_call(state, change)
    except TransitionRefused as error:
        raise Refused(f"call {call_id} is settled: {error}") from error


def write_receipt(statements: Statements, call: Call, external_id: str, origin: str, at: int) -> bool:
    """The proof of an effect; False if its key has one already, which the event then says."""
    values = {
        "call_id": call.id,
        "run_id": call.run_id,
        "key": call.key,
        "target": call.target,
        "rule": call.rule,
        "output": call.output,
        "external_id": external_id,
        "origin": origin,
        "at": at,
    }
    return statements.run("add_receipt", values) == 1


def digest(text: str) -> str:
    """What an event says of a text that stands elsewhere, so that the chain covers it too."""
    return hashlib.sha256(text.encode()).hexdigest()


def outcome_facts(call: Call, external_id: str, origin: str, *, receipt: bool | None) -> Fact:
    """How a call came out."""
    data: dict[str, object] = {"call": call.id, "output": digest(call.output), "origin": origin}
    if call.exit_code is not None:
        data["exit_code"] = call.exit_code
    if call.reason:
        data["reason"] = call.reason
    if receipt is not None:
        data["receipt"] = receipt
        data["external_id"] = external_id
    return Fact(f"call.{call.state}", data)


def _settled(call: Call, settlement: Settlement) -> Call:
    state = changed(call.id, call.state, settlement.change)
    return call._replace(
        state=state,
        output=clean(settlement.output),
        exit_code=settlement.exit_code,
        reason=clean(settlement.reason) or call.reason,
        finished_at=None if state is CallState.IN_DOUBT else settlement.at,
    )


def _outcome(call: Call, before: CallState) -> dict[str, object]:
    """What settling changes; `before` is what the state has to be in the database."""
    return {
        "run_id": call.run_id,
        "id": call.id,
        "before": str(before),
        "state": str(call.state),
        "output": call.output,
        "exit_code": call.exit_code,
        "reason": call.reason,
        "finished_at": call.finished_at,
    }


def _intended(
    lease: Lease, intent: Intent, admission: Admission, place: tuple[int, int], occurrence: int, at: int
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
        input=clean(intent.input),
        state=_ADMITTED[decision][0],
        prepared_at=at,
        agent_call=clean(intent.agent_call),
        reason=clean(admission.reason),
        original=admission.original,
        # An asked call stays open until a person has answered it.
        finished_at=at if decision in _CLOSED else None,
    )


def _intent_facts(call: Call) -> dict[str, object]:
    data: dict[str, object] = {
        "call": call.id,
        "tool": call.tool,
        "class": call.call_class,
        "rule": call.rule,
        "input": digest(call.input),
    }
    if call.target:
        data["target"] = call.target
    if call.reason:
        data["reason"] = call.reason
    if call.original:
        data["original"] = call.original
    return data
