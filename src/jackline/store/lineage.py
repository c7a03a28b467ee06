"""What a fork inherits: receipts up to where it was forked, and a warning of all that came after. It only reads."""

from __future__ import annotations

from jackline.domain.gate import History, Intent
from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState
from jackline.named import NamedTuple
from jackline.store import rows
from jackline.store.driver import Statements, clean

_MOST = 20  # of an ancestor's calls on one target
_WORDS = {
    "call_class": str(CallClass.EFFECT),
    "done": str(CallState.DONE),
    "in_doubt": str(CallState.IN_DOUBT),
    "prepared": str(CallState.PREPARED),
    "most": _MOST,
}


class Ancestor(NamedTuple):
    """A run that another was forked from, and the last of its steps that the fork knows; None: all of them."""

    id: str
    forked_at: int | None


def ancestors(statements: Statements, run_id: str) -> list[Ancestor]:
    """Nearest first."""
    return [Ancestor(*row) for row in statements.all("ancestors", {"run_id": run_id})]


def inherited(statements: Statements, run_id: str, intent: Intent, known: History) -> History:
    """The history of an effect with what the run's ancestors did."""
    before, after, unsettled = known.receipt, None, None
    touched: list[Call] = []
    for one in ancestors(statements, run_id):
        values = {**_WORDS, "run_id": one.id, "key": intent.key, "target": clean(intent.target)}
        receipt = _receipt(statements, values)
        if receipt is not None and _is_known(statements, one, receipt):
            before = before or receipt
        elif receipt is not None:
            after = after or receipt
        unsettled = unsettled or _call(statements, values)
        if intent.target:
            touched += [rows.to_call(row) for row in statements.all("touched_target", values)]
    target = (*known.same_target, *touched)
    return known._replace(receipt=before, after_fork=after, unsettled=unsettled, same_target=target)


def _receipt(statements: Statements, values: dict[str, object]) -> Receipt | None:
    row = statements.one("receipt_of_key", values)
    return None if row is None else Receipt(*row)


def _is_known(statements: Statements, ancestor: Ancestor, receipt: Receipt) -> bool:
    if ancestor.forked_at is None:
        return True
    row = statements.one("step_of_call", {"run_id": ancestor.id, "id": receipt.call_id})
    return row is not None and int(row[0]) <= ancestor.forked_at


def _call(statements: Statements, values: dict[str, object]) -> Call | None:
    row = statements.one("unsettled_of_key", values)
    return None if row is None else rows.to_call(row)
