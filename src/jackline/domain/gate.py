"""The gate's decision about one call, from its rule and its history. Pure: the ledger asks inside its transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jackline.domain.states import CallClass, CallState, Decision

if TYPE_CHECKING:
    from jackline.domain.records import Call, Receipt
    from jackline.domain.rule import Rule


class Intent(NamedTuple):
    """A call that an agent wants to make, as the gate sees it."""

    call_id: str
    tool: str
    rule: Rule
    key: str
    target: str
    input: str
    door: str
    agent_call: str = ""


class History(NamedTuple):
    """What the ledger knows that bears on an intent."""

    attempt: int
    receipt: Receipt | None  # of the same key, in this run or its ancestors
    same_key: tuple[Call, ...]  # earlier calls with the same key in this run, newest first
    same_target: tuple[Call, ...]  # effects of earlier attempts on the target with another key: done or in doubt
    calls: int  # how many calls the run has made
    of_rule: int  # how many calls of this rule were allowed
    most_calls: int | None


class Admission(NamedTuple):
    """The answer: what is decided, and why, in words that a model can act on."""

    decision: Decision
    reason: str = ""
    original: str | None = None
    spent: bool = False  # the call budget is gone: the run must stop, not only this call


def observed(intent: Intent, history: History) -> Admission:
    """What to write of a call that runs already, because its agent has no enforced door: that nobody held it."""
    if history.most_calls is not None and history.calls >= history.most_calls:
        return Admission(Decision.ALLOW, f"the run's budget of {history.most_calls} calls is spent", spent=True)
    rule = intent.rule
    if must_be_held(rule):
        wanted = "denies" if rule.decision is Decision.DENY else "wants a person to agree to"
        return Admission(Decision.ALLOW, f"rule '{rule.name}' {wanted} {intent.tool}, and nobody held it")
    return Admission(Decision.ALLOW, "seen in the agent's output")


def must_be_held(rule: Rule) -> bool:
    """Whether somebody must be able to stop a call of this rule."""
    return rule.decision in {Decision.DENY, Decision.ASK}


def decide(intent: Intent, history: History) -> Admission:
    """Say whether the call may run. Anything but an effect repeats freely while the run lives."""
    if history.most_calls is not None and history.calls >= history.most_calls:
        return Admission(Decision.DENY, f"the run's budget of {history.most_calls} calls is spent", spent=True)
    rule = intent.rule
    if rule.decision is Decision.DENY:
        return Admission(Decision.DENY, f"rule '{rule.name}' denies {intent.tool}")
    if rule.call_class is CallClass.EFFECT:
        return _effect(intent, history)
    if rule.call_class is CallClass.UNKNOWN and (cut_off := _cut_off(history)) is not None:
        reason = f"{intent.tool} was cut off by a crash, outcome unknown: look first, then call it again"
        return Admission(Decision.DENY, reason, cut_off.id)
    return _used_up(rule, history) or _free(intent, history)


def _effect(intent: Intent, history: History) -> Admission:
    if history.receipt is not None:
        return Admission(Decision.STORED, "done before; this is the stored result", history.receipt.call_id)
    for call in sorted(history.same_key, key=_is_settled):  # an open one decides before any later word
        answered = _answered(call)
        if answered is not None:
            return answered
    # Only now: a stored result, or a repeat of what did not happen, is not one more effect.
    used_up = _used_up(intent.rule, history)
    if used_up is not None:
        return used_up
    known = _moved_target(intent, history)
    if known is not None:
        reason = f"'{intent.target}' was already touched by call {known.id} with other content; a person must agree"
        return Admission(Decision.ASK, reason, known.id)
    return Admission(intent.rule.decision, _asked(intent) if intent.rule.decision is Decision.ASK else "")


def _answered(call: Call) -> Admission | None:
    """What an earlier call of the same key already settles about this one."""
    match call.state, call.answer:
        case CallState.PREPARED, _:
            return Admission(Decision.DENY, f"the same effect is under way as call {call.id}", call.id)
        case CallState.IN_DOUBT, _:
            return Admission(Decision.DENY, f"call {call.id} may have done this already; it is in doubt", call.id)
        case _, "skip" | "deny":
            return Admission(Decision.DENY, f"a person said: do not do this (call {call.id})", call.id)
        case CallState.DENIED, "allow":
            return Admission(Decision.ALLOW, f"approved by a person (call {call.id})", call.id)
        case CallState.VOID, _:
            return Admission(Decision.ALLOW, f"call {call.id} is known not to have happened", call.id)
        case CallState.FAILED, _:
            return Admission(Decision.ALLOW, f"call {call.id} is known to have done nothing", call.id)
    return None


def _is_settled(call: Call) -> bool:
    return call.state not in {CallState.PREPARED, CallState.IN_DOUBT}


def _used_up(rule: Rule, history: History) -> Admission | None:
    if rule.most is None or history.of_rule < rule.most:
        return None
    return Admission(Decision.DENY, f"rule '{rule.name}' allows {rule.most} in one run; that many were made")


def _moved_target(intent: Intent, history: History) -> Call | None:
    """A model that lost its memory rewords the mail: only what was done before this attempt counts."""
    earlier = (call for call in history.same_target if call.attempt < history.attempt)
    return next(earlier, None) if intent.target else None


def _asked(intent: Intent) -> str:
    touches = f" touches '{intent.target}'" if intent.target else " runs"
    return f"rule '{intent.rule.name}' wants a person to agree before {intent.tool}{touches}"


def _cut_off(history: History) -> Call | None:
    """The call that a crash cut off, unless this attempt was warned of it or it was made again since."""
    for call in history.same_key:
        if call.state is CallState.IN_DOUBT:
            return call
        if call.decision is not Decision.DENY or call.attempt == history.attempt:
            return None
    return None


def _free(intent: Intent, history: History) -> Admission:
    """What repeats freely; where a rule wants a person to agree, one answer holds for every repeat."""
    if intent.rule.decision is not Decision.ASK:
        return Admission(Decision.ALLOW)
    for call in history.same_key:
        if call.answer == "deny":
            return Admission(Decision.DENY, f"a person said: do not do this (call {call.id})", call.id)
        if call.answer == "allow" or call.decision is Decision.ALLOW:
            return Admission(Decision.ALLOW, f"approved by a person (call {call.id})", call.id)
    return Admission(Decision.ASK, _asked(intent))
