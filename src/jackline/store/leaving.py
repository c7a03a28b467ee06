"""What becomes of calls without an outcome when their run is ended and nobody will come back for them."""

from __future__ import annotations

from jackline.domain.events import Fact
from jackline.domain.records import Call, Notice
from jackline.domain.states import CallClass, CallState
from jackline.domain.transitions import next_call
from jackline.store import facts, rows
from jackline.store.driver import Statements
from jackline.store.ledger import outcome
from jackline.store.ledger_reading import WORDS

_ORIGIN = "cancel"
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})


def settle_open(statements: Statements, run_id: str, at: int) -> tuple[Fact, ...]:
    """Settle the calls that are still prepared: what may have happened is in doubt, the rest is given up."""
    opened = [rows.to_call(row) for row in statements.all("open_calls", {**WORDS, "run_id": run_id})]
    return tuple(_left(statements, call, at) for call in opened if call.state is CallState.PREPARED)


def told(statements: Statements, notice: Notice) -> Notice:
    """The notice of the run's end, with the effects that nobody knows the outcome of."""
    opened = [rows.to_call(row) for row in statements.all("open_calls", {**WORDS, "run_id": notice.run_id})]
    count = sum(call.call_class is CallClass.EFFECT for call in opened)
    if not count:
        return notice
    stay = f"{count} effect stays" if count == 1 else f"{count} effects stay"
    said = f"{stay} in doubt: jackline receipts {notice.run_id}"
    return notice._replace(body=f"{notice.body}\n{said}" if notice.body else said)


def _left(statements: Statements, call: Call, at: int) -> Fact:
    change = "abandon" if call.call_class in _REPEATS_FREELY else "doubt"
    state = next_call(call.state, change)
    ended = None if state is CallState.IN_DOUBT else at
    left = call._replace(state=state, reason="its run was cancelled", finished_at=ended)
    statements.run("settle_call", outcome(left, call.state))
    return facts.settled(left, "", _ORIGIN, receipt=None)
