"""The earlier calls that bear on an intent: a few bounded reads in the transaction that writes the intent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.call_gate import ALWAYS, History, RuleLimit, can_approve_always
from jackline.domain.records import Receipt
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.policy.rules import NAME_SEPARATOR
from jackline.store import rows
from jackline.store.driver import clean

if TYPE_CHECKING:
    from jackline.domain.call_gate import Intent
    from jackline.domain.records import Call, Lease
    from jackline.store.driver import Statements
    from jackline.store.parts import RunHead

_MOST = 20  # calls of one key or one target that are read: a loop of ten thousand must not slow the gate
# The earlier outcomes of these do not matter and are not read, unless a person was asked about one, or a finished one
# must not be launched again.
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})
_NEWEST = 1  # only the newest call of its key shows whether an unknown call was cut off
_WORDS = {
    "call_class": str(CallClass.EFFECT),
    "done": str(CallState.DONE),
    "in_doubt": str(CallState.IN_DOUBT),
    "prepared": str(CallState.PREPARED),
    "denied": str(CallState.DENIED),
    "most": _MOST,
}


def read_history(
    statements: Statements, lease: Lease, intent: Intent, head: RunHead, most_calls: int | None
) -> tuple[History, int]:
    """The history of an intent, and the number of its calls by key with this one; 0 if they are not counted."""
    rule = intent.rule
    of_rule = 0 if rule.most is None else _count_of_rule(statements, lease, intent, rule.most)
    if rule.call_class in _REPEATS_FREELY and not _needs_history(intent):
        return History(
            attempt=lease.token,
            receipt=None,
            same_key=(),
            same_target=(),
            calls=head.calls,
            of_rule=of_rule,
            most_calls=most_calls,
        ), 0
    # A build that runs all day is not read back twenty times, with its output.
    only_newest = rule.call_class is CallClass.UNKNOWN and not (_needs_history(intent) or intent.waits_for)
    most = _NEWEST if only_newest else _MOST
    values = {**_WORDS, "run_id": lease.run_id, "key": intent.key, "most": most}
    row = statements.one("count_of_key", values)
    seen = 0 if row is None else int(row[0])
    is_effect = rule.call_class is CallClass.EFFECT
    receipt = _read_receipt(statements, values) if is_effect and seen else None
    known = History(
        attempt=lease.token,
        receipt=receipt,
        # A receipt decides, whatever else is known about the key.
        same_key=_read_same_key(statements, values) if seen and receipt is None else (),
        same_target=_read_same_target(statements, lease, intent) if is_effect and intent.target else (),
        calls=head.calls,
        of_rule=of_rule,
        most_calls=most_calls,
    )
    if rule.decision is Decision.ASK or known.same_target:
        known = known._replace(always=_read_always(statements, lease, intent))
    if is_effect and head.parent is not None:
        known = _add_inherited(statements, lease.run_id, intent, known)
    return known, seen + 1


def _needs_history(intent: Intent) -> bool:
    rule = intent.rule
    return rule.decision is Decision.ASK or bool(intent.question) or rule.replay is Replay.RELAUNCH


def _read_receipt(statements: Statements, values: dict[str, object]) -> Receipt | None:
    row = statements.one("receipt_of_key", values)
    return None if row is None else Receipt(*row)


def _read_same_key(statements: Statements, values: dict[str, object]) -> tuple[Call, ...]:
    """Newest first."""
    calls = [rows.parse_call(row) for row in statements.all("calls_of_key", values)]
    if not any(call.state is CallState.IN_DOUBT for call in calls):
        return tuple(calls)
    # Only then does it matter whether the agent was already asked to check first.
    denial = statements.one("last_denial", values)
    if denial is None:
        return tuple(calls)
    return tuple(sorted([*calls, rows.parse_call(denial)], key=lambda call: call.occurrence, reverse=True))


def _read_same_target(statements: Statements, lease: Lease, intent: Intent) -> tuple[Call, ...]:
    """The calls of an earlier attempt or session, and those in doubt: within one session the agent knows its own."""
    place = {"key": intent.key, "target": clean(intent.target), "attempt": lease.token, "since": intent.since_turn}
    values = {**_WORDS, "run_id": lease.run_id, **place}
    return tuple(rows.parse_call(row) for row in statements.all("same_target", values))


def _read_always(statements: Statements, lease: Lease, intent: Intent) -> Call | None:
    """The call of the same rule and target for which a person answered `always`."""
    if not can_approve_always(intent.rule.name, intent.target):
        return None
    words = {"rule": clean(intent.rule.name), "target": clean(intent.target), "answer": ALWAYS}
    row = statements.one("always_approved", {**_WORDS, "run_id": lease.run_id, **words})
    return None if row is None else rows.parse_call(row)


def _count_of_rule(statements: Statements, lease: Lease, intent: Intent, most: int) -> int:
    """Only a rule with a limit is counted, and never beyond it; as if all had the same limit, the smallest."""
    limits = intent.limits or (RuleLimit(rule=intent.rule.name, most=most),)
    return max(most + _count_allowed(statements, lease, one) + one.times - 1 - one.most for one in limits)


def _count_allowed(statements: Statements, lease: Lease, limit: RuleLimit) -> int:
    words = {
        "part": clean(f"{NAME_SEPARATOR}{limit.rule}{NAME_SEPARATOR}"),
        "allow": str(Decision.ALLOW),
        "void": str(CallState.VOID),
    }
    row = statements.one("count_of_rule", {"run_id": lease.run_id, **words, "most": limit.most})
    return 0 if row is None else int(row[0])


def _add_inherited(statements: Statements, run_id: str, intent: Intent, known: History) -> History:
    """The history of a fork's effect: receipts up to the fork, and a warning about everything after it."""
    before, after, unsettled = known.receipt, None, None
    touched: list[Call] = []
    for ancestor, forked_at in statements.all("ancestors", {"run_id": run_id}):
        values = {**_WORDS, "run_id": ancestor, "key": intent.key, "target": clean(intent.target)}
        receipt = _read_receipt(statements, values)
        if receipt is not None and _is_before_fork(statements, receipt, forked_at):
            before = before or receipt
        elif receipt is not None:
            after = after or receipt
        row = statements.one("unsettled_of_key", values)
        unsettled = unsettled or (None if row is None else rows.parse_call(row))
        if intent.target:
            touched += [rows.parse_call(row) for row in statements.all("touched_target", values)]
    target = (*known.same_target, *touched)
    return known._replace(receipt=before, after_fork=after, unsettled=unsettled, same_target=target)


def _is_before_fork(statements: Statements, receipt: Receipt, forked_at: int | None) -> bool:
    """`forked_at` is the last step that the fork knows; None: all of them."""
    if forked_at is None:
        return True
    row = statements.one("step_of_call", {"run_id": receipt.run_id, "id": receipt.call_id})
    return row is not None and int(row[0]) <= forked_at
