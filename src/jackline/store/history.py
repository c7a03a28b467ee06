"""What the ledger knows that bears on an intent: a few bounded reads in the transaction that writes it down."""

from __future__ import annotations

from jackline.domain.gate import History, Intent
from jackline.domain.records import Call, Lease, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.store import rows
from jackline.store.base import Head
from jackline.store.driver import Statements, clean

_MOST = 20  # calls of one key or one target that are looked at: a loop of ten thousand must not slow the gate
# What came of these before makes no difference, so it is not read.
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})


def read(
    statements: Statements, lease: Lease, intent: Intent, head: Head, most_calls: int | None
) -> tuple[History, int]:
    """The history of an intent, and how many times the run has seen its key, this one counted."""
    values = {"run_id": lease.run_id, "key": intent.key, "denied": str(CallState.DENIED), "most": _MOST}
    row = statements.one("seen_of_key", values)
    seen = 0 if row is None else int(row[0])
    kind = intent.rule.call_class
    effect = kind is CallClass.EFFECT
    known = History(
        attempt=lease.token,
        receipt=_receipt(statements, head, values, seen) if effect else None,
        same_key=_same_key(statements, values) if seen and kind not in _REPEATS_FREELY else (),
        same_target=_same_target(statements, intent, values) if effect and intent.target else (),
        calls=head.calls,
        of_rule=0 if intent.rule.most is None else _of_rule(statements, intent, values),
        most_calls=most_calls,
    )
    return known, seen + 1


def _receipt(statements: Statements, head: Head, values: dict[str, object], seen: int) -> Receipt | None:
    row = statements.one("receipt_of_key", values) if seen else None
    if row is None and head.parent is not None:
        row = statements.one("receipt_of_ancestor", values)
    return None if row is None else Receipt(*row)


def _same_key(statements: Statements, values: dict[str, object]) -> tuple[Call, ...]:
    """Newest first."""
    telling = [rows.to_call(row) for row in statements.all("telling_of_key", values)]
    denial = statements.one("last_denial", values) if _warns(telling) else None
    if denial is None:
        return tuple(telling)
    return tuple(sorted([*telling, rows.to_call(denial)], key=lambda call: call.occurrence, reverse=True))


def _warns(telling: list[Call]) -> bool:
    """Only where something is in doubt does it matter whether the agent was already told to look first."""
    return any(call.state is CallState.IN_DOUBT for call in telling)


def _same_target(statements: Statements, intent: Intent, values: dict[str, object]) -> tuple[Call, ...]:
    wanted = {
        **values,
        "target": clean(intent.target),
        "call_class": str(CallClass.EFFECT),
        "done": str(CallState.DONE),
        "in_doubt": str(CallState.IN_DOUBT),
    }
    return tuple(rows.to_call(row) for row in statements.all("same_target", wanted))


def _of_rule(statements: Statements, intent: Intent, values: dict[str, object]) -> int:
    """Only a rule that has a limit is counted, and never beyond it."""
    words = {"rule": clean(intent.rule.name), "allow": str(Decision.ALLOW)}
    row = statements.one("count_of_rule", {**values, **words, "most": intent.rule.most})
    return 0 if row is None else int(row[0])
