"""What the ledger knows that bears on an intent: a few bounded reads in the transaction that writes it down."""

from __future__ import annotations

from jackline.domain.combining import JOINED
from jackline.domain.gate import History, Intent, Limit
from jackline.domain.records import Call, Lease, Receipt
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.store import lineage, rows
from jackline.store.base import Head
from jackline.store.driver import Statements, clean

_FIRST = 1  # the token of a run's first attempt
_MOST = 20  # calls of one key or one target that are looked at: a loop of ten thousand must not slow the gate
# What came of these before makes no difference, so it is not read; unless a person was asked about it, or a finished
# one is not to be launched again.
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})
_DENIED = str(CallState.DENIED)
_NEWEST = 1  # the only call of its key that says whether an unknown one was cut off


def read(
    statements: Statements, lease: Lease, intent: Intent, head: Head, most_calls: int | None
) -> tuple[History, int]:
    """The history of an intent, and how many times the run has seen its key, this one counted; 0 if nobody counts."""
    rule = intent.rule
    of_rule = 0 if rule.most is None else _of_rule(statements, lease, intent, rule.most)
    if _repeats_freely(rule):
        return History(lease.token, None, (), (), head.calls, of_rule, most_calls), 0
    values = {"run_id": lease.run_id, "key": intent.key, "denied": _DENIED, "most": _most_of_key(intent)}
    row = statements.one("seen_of_key", values)
    seen = 0 if row is None else int(row[0])
    effect = rule.call_class is CallClass.EFFECT
    receipt = _receipt(statements, values) if effect and seen else None
    known = History(
        attempt=lease.token,
        receipt=receipt,
        # Where there is a receipt it decides, whatever else was said of the key.
        same_key=_same_key(statements, values) if seen and receipt is None else (),
        same_target=_same_target(statements, lease, intent) if effect and intent.target else (),
        calls=head.calls,
        of_rule=of_rule,
        most_calls=most_calls,
    )
    if effect and head.parent is not None:
        known = lineage.inherited(statements, lease.run_id, intent, known)
    return known, seen + 1


def _repeats_freely(rule: Rule) -> bool:
    return rule.call_class in _REPEATS_FREELY and not _is_told_of(rule)


def _is_told_of(rule: Rule) -> bool:
    return rule.decision is Decision.ASK or rule.replay is Replay.RELAUNCH


def _most_of_key(intent: Intent) -> int:
    """How many are looked at: a build that runs all day is not to be read back twenty times, with its output."""
    rule = intent.rule
    told_of = _is_told_of(rule) or intent.waits_for
    return _NEWEST if rule.call_class is CallClass.UNKNOWN and not told_of else _MOST


def _receipt(statements: Statements, values: dict[str, object]) -> Receipt | None:
    row = statements.one("receipt_of_key", values)
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


def _same_target(statements: Statements, lease: Lease, intent: Intent) -> tuple[Call, ...]:
    """Only what an earlier attempt or session did to it: within one session the agent knows what it has done."""
    if lease.token == _FIRST and not intent.since_turn:
        return ()
    wanted = {
        "run_id": lease.run_id,
        "key": intent.key,
        "target": clean(intent.target),
        "attempt": lease.token,
        "since": intent.since_turn,
        "call_class": str(CallClass.EFFECT),
        "done": str(CallState.DONE),
        "in_doubt": str(CallState.IN_DOUBT),
        "most": _MOST,
    }
    return tuple(rows.to_call(row) for row in statements.all("same_target", wanted))


def _of_rule(statements: Statements, lease: Lease, intent: Intent, most: int) -> int:
    """Only a rule that has a limit is counted, and never beyond it; as if all had the same limit, the smallest."""
    limits = intent.limits or (Limit(intent.rule.name, most),)
    return max(most + _allowed(statements, lease, one) + one.times - 1 - one.most for one in limits)


def _allowed(statements: Statements, lease: Lease, limit: Limit) -> int:
    words = {"part": clean(f"{JOINED}{limit.rule}{JOINED}"), "allow": str(Decision.ALLOW), "void": str(CallState.VOID)}
    row = statements.one("count_of_rule", {"run_id": lease.run_id, **words, "most": limit.most})
    return 0 if row is None else int(row[0])
