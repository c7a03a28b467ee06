"""The gate's decision about one call, from its rule and its history. Pure: the ledger asks inside its transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.domain.records import Call, Receipt
    from jackline.domain.rule import Rule


class Limit(NamedTuple):
    """How often a rule may be used in one run, and how often one call would use it."""

    rule: str
    most: int
    times: int = 1


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
    parent_id: str | None = None  # the call that this one is part of
    since_turn: int = 0  # where the session that asks began: what was done before it does not remember
    replaces: str | None = None  # the call that a crash cut off and that this one makes again
    waits_for: str = ""  # what has to be made again before anything else, in words
    mistake: str = ""  # why the input does not fit the tool
    external: str = ""  # JSON: what the host knew when it was asked, such as the commit that is to be pushed
    run_id: str = ""  # of the run that asks: a target may have been touched by the one that it was forked from
    limits: tuple[Limit, ...] = ()  # of each rule that meets in the call; none: its rule's own


class History(NamedTuple):
    """What the ledger knows that bears on an intent."""

    attempt: int
    receipt: Receipt | None  # of the same key, in this run or its ancestors
    same_key: tuple[Call, ...]  # earlier calls with the same key in this run, newest first
    same_target: tuple[Call, ...]  # earlier effects on the target with another key: done or in doubt
    calls: int  # how many calls the run has made
    of_rule: int  # how many calls of this rule were allowed; where several meet: of the one that is nearest its limit
    most_calls: int | None
    after_fork: Receipt | None = None  # of the same key, made by an ancestor after this run was forked from it
    unsettled: Call | None = None  # an ancestor's effect of the same key whose outcome nobody knows


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
    return Admission(Decision.ALLOW, "seen in the agent's output", intent.replaces)


def must_be_held(rule: Rule) -> bool:
    """Whether somebody must be able to stop a call of this rule."""
    return rule.decision in {Decision.DENY, Decision.ASK}


def is_a_persons(call: Call, *, strict: bool) -> bool:
    """Whether a run has to wait for a person's word on a call in doubt: not on every unknown one, by default."""
    return call.state is CallState.IN_DOUBT and (call.call_class is not CallClass.UNKNOWN or strict)


def is_asked(call: Call) -> bool:
    """Whether a person was asked about the call and has not answered."""
    return call.state is CallState.DENIED and call.decision is Decision.ASK and not call.answer


def decide(intent: Intent, history: History) -> Admission:
    """Say whether the call may run. Anything but an effect repeats freely while the run lives."""
    if history.most_calls is not None and history.calls >= history.most_calls:
        return Admission(Decision.DENY, f"the run's budget of {history.most_calls} calls is spent", spent=True)
    rule = intent.rule
    refused = _refused(intent, rule)
    if refused:
        return Admission(Decision.DENY, refused)
    known = _known(intent, history)
    if known is not None:
        return known
    if intent.waits_for and not _is_approved(history):
        return Admission(Decision.DENY, f"calls were cut off by a crash; first make them again: {intent.waits_for}")
    if rule.call_class is CallClass.EFFECT:
        return _effect(intent, history)
    if rule.call_class is CallClass.UNKNOWN and (cut_off := _cut_off(history)) is not None:
        reason = f"{intent.tool} was cut off by a crash, outcome unknown: look first, then call it again"
        return Admission(Decision.DENY, reason, cut_off.id)
    # One that is made again was counted when it was cut off.
    used_up = None if intent.replaces else _used_up(rule, history)
    admitted = used_up or _free(intent, history)
    return admitted._replace(original=intent.replaces or admitted.original)


def _refused(intent: Intent, rule: Rule) -> str:
    """Why the call is denied whatever happened before; with a hint, because a model reads it."""
    if intent.mistake:
        return intent.mistake
    if rule.decision is not Decision.DENY:
        return ""
    return f"rule '{rule.name}' denies {intent.tool}" + (f": {rule.hint}" if rule.hint else "")


def _known(intent: Intent, history: History) -> Admission | None:
    """The result that stands in the ledger already. It touches nothing, so it is given at any time."""
    if history.receipt is not None:
        return Admission(Decision.STORED, "done before; this is the stored result", history.receipt.call_id)
    if intent.rule.replay is not Replay.RELAUNCH:
        return None
    # Who made it in this attempt knows the result; who asks again wants it again.
    done = (call for call in history.same_key if call.state is CallState.DONE and call.attempt < history.attempt)
    finished = next(done, None)
    if finished is None:
        return None
    return Admission(Decision.STORED, "finished before; this is its output", finished.id)


def _effect(intent: Intent, history: History) -> Admission:
    for call in sorted(history.same_key, key=_is_settled):  # an open one decides before any later word
        answered = _answered(call)
        if answered is not None:
            return _within(intent.rule, history, call, answered)
    # Only now: a stored result, or a repeat of what did not happen, is not one more effect.
    used_up = _used_up(intent.rule, history)
    if used_up is not None:
        return used_up
    if history.after_fork is not None:
        reason = f"run {history.after_fork.run_id} has done this after the fork; a person must agree to do it again"
        return Admission(Decision.ASK, reason, history.after_fork.call_id)
    if history.unsettled is not None:
        call = history.unsettled
        reason = f"call {call.id} of run {call.run_id} may have done this already; a person must agree to do it again"
        return Admission(Decision.ASK, reason, call.id)
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


def _is_approved(history: History) -> bool:
    """Whether a person agreed to this very call: then it need not wait for others."""
    return any(call.state is CallState.DENIED and call.answer == "allow" for call in history.same_key)


def _within(rule: Rule, history: History, call: Call, answered: Admission) -> Admission:
    """Approved calls are effects that were not made yet: they count against the rule's limit, too."""
    approved = call.state is CallState.DENIED and answered.decision is Decision.ALLOW
    return (approved and _used_up(rule, history)) or answered


def _is_settled(call: Call) -> bool:
    return call.state not in {CallState.PREPARED, CallState.IN_DOUBT}


def _used_up(rule: Rule, history: History) -> Admission | None:
    if rule.most is None or history.of_rule < rule.most:
        return None
    return Admission(Decision.DENY, f"rule '{rule.name}' allows {rule.most} in one run; that many were made")


def _moved_target(intent: Intent, history: History) -> Call | None:
    """A model that lost its memory rewords the mail: only what was done before this attempt or session counts."""
    earlier = (call for call in history.same_target if _is_forgotten(call, intent, history))
    return next(earlier, None) if intent.target else None


def _is_forgotten(call: Call, intent: Intent, history: History) -> bool:
    inherited = bool(intent.run_id) and call.run_id != intent.run_id
    return inherited or call.attempt < history.attempt or call.turn < intent.since_turn


def _asked(intent: Intent) -> str:
    touches = f" touches '{intent.target}'" if intent.target else " runs"
    return f"rule '{intent.rule.name}' wants a person to agree before {intent.tool}{touches}"


def _cut_off(history: History) -> Call | None:
    """The call that a crash cut off, unless this attempt was warned of it or it was made again since."""
    for call in history.same_key:
        if call.state is CallState.IN_DOUBT:
            return call
        if call.decision is Decision.DENY and call.original is None:  # it had to wait: that was no warning
            continue
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
