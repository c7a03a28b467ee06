"""Decides about one call, from its rule and its history. Pure: the ledger calls it inside its transaction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, CallState, Decision, ReasonCode, Replay
from jackline.formatting import shorten_text
from jackline.named import NamedTuple
from jackline.policy.agreements import format_agreements, has_unknown_part, list_rule_names
from jackline.policy.rules import DEFAULT_TARGET, NAME_SEPARATOR

if TYPE_CHECKING:
    from jackline.domain.records import Call, Receipt
    from jackline.policy.agreements import AskedPart
    from jackline.policy.rules import Rule


HOST = "host"  # the door of effects that the host makes itself
NOT_NOW = "not-now"  # sets a question aside without an answer: a later call may ask again
ALWAYS = "always"  # approves the call, and later calls of its rule with its target in this run
APPROVALS = frozenset({"allow", ALWAYS})
_SHOWN = 200  # characters of a command in a reason
_UNKNOWN_PART = re.compile(r"\[redacted\]|(?:^|[:/])null(?:$|[:/])|[$`]")


class RuleLimit(NamedTuple):
    """How often a rule may be used in one run, and how often one call would use it."""

    rule: str
    most: int
    times: int = 1


class IntentEffect(NamedTuple):
    """One effect of a shell call."""

    rule: str
    key: str  # empty if its text does not identify it
    target: str
    words: str
    unclear: str = ""  # what is only known when it runs


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
    since_turn: int = 0  # first turn of the asking session, which does not remember anything before
    replaces: str | None = None  # the interrupted call that this one makes again
    waits_for: str = ""  # the calls to make again first, as text
    mistake: str = ""  # why the input does not fit the tool
    external: str = ""  # JSON: what the host knew before the call, such as the commit to push
    run_id: str = ""  # the asking run: the run that it was forked from may have touched the target
    impossible: frozenset[int] = frozenset()  # exit codes with which it did not happen, because it could not
    limits: tuple[RuleLimit, ...] = ()  # one for each rule that matches the call; empty: those of its rule
    parts: tuple[AskedPart, ...] = ()  # what needs approval, for the question
    is_unattended: bool = False  # the run's profile denies what would ask
    effects: tuple[IntentEffect, ...] = ()  # of a shell call
    company: str = ""  # what else the call does besides its effect, except reading
    question: str = ""  # why it may repeat an earlier effect in other words; a person decides
    question_about: str | None = None  # the call that may have made it
    refusal: str = ""  # why a turn that only reads may not make it
    is_prevented: bool = True  # if it is refused: by the gate, or by a read-only mode of the agent


class History(NamedTuple):
    """What the ledger knows about an intent."""

    attempt: int
    receipt: Receipt | None  # of the same key, in this run or its ancestors
    same_key: tuple[Call, ...]  # earlier calls with the same key in this run, newest first
    same_target: tuple[Call, ...]  # earlier effects on the target with another key: done or in doubt
    calls: int  # how many calls the run has made
    of_rule: int  # allowed calls of this rule; if several match: of the rule closest to its limit
    most_calls: int | None
    after_fork: Receipt | None = None  # of the same key, made by an ancestor after this run was forked from it
    unsettled: Call | None = None  # an ancestor's effect of the same key, in doubt
    always: Call | None = None  # a call of the same rule and target for which a person answered `always`


class Admission(NamedTuple):
    """The decision and its reason, in words that a model can act on."""

    decision: Decision
    reason: str = ""
    original: str | None = None
    spent: bool = False  # the call budget is gone: the run must stop, not only this call
    reason_code: str = ""


def admit_observed(intent: Intent, history: History) -> Admission:
    """Admit a call that is running already, because its agent has no enforced gate."""
    if history.most_calls is not None and history.calls >= history.most_calls:
        return Admission(Decision.ALLOW, f"the run's budget of {history.most_calls} calls is spent", spent=True)
    rule = intent.rule
    if intent.refusal:
        return Admission(Decision.ALLOW, f"{intent.tool} was not gated: {intent.refusal}")
    if needs_gate(rule):
        verb = "denies" if rule.decision is Decision.DENY else "requires approval for"
        return Admission(Decision.ALLOW, f"rule '{rule.name}' {verb} {intent.tool}, but the call was not gated")
    return Admission(Decision.ALLOW, "seen in the agent's output", original=intent.replaces)


def needs_gate(rule: Rule) -> bool:
    """Whether a call of this rule must not run ungated."""
    return rule.decision in {Decision.DENY, Decision.ASK}


def needs_person(call: Call, *, strict: bool) -> bool:
    """Whether only a person can settle the call; by default not if its class is unknown."""
    return call.state is CallState.IN_DOUBT and (call.call_class is not CallClass.UNKNOWN or strict)


def is_waiting_for_approval(call: Call) -> bool:
    """Whether the call waits for approval."""
    return call.state is CallState.DENIED and call.decision is Decision.ASK and not call.answer


def can_approve_always(rule: str, target: str) -> bool:
    """Whether `always` covers more than the call itself: one rule, and a target that names one thing.

    A merged rule may contain any other command, and a redacted target may be another one the next time.
    """
    kind, *parts = target.split(":")
    # The default target is every effect of the program.
    is_named = bool(parts) and bool(parts[-1]) and not _UNKNOWN_PART.search(target)
    is_named = is_named and not target.startswith(DEFAULT_TARGET)
    return NAME_SEPARATOR not in rule and bool(kind) and is_named


def needs_synced_intent(rule: Rule) -> bool:
    """Whether the intent must be on disk before the answer: a count of allowed calls must also survive a power cut."""
    return rule.most is not None or needs_synced_outcome(rule)


def needs_synced_outcome(call: Call | Rule) -> bool:
    """Whether the outcome must be on disk before the answer.

    Not that of a read or a local call that is simply allowed: without its record, the next attempt makes it again.
    """
    repeats = call.call_class in {CallClass.READ, CallClass.LOCAL} and call.replay is not Replay.RELAUNCH
    return not (repeats and call.decision is Decision.ALLOW)


def decide_call(intent: Intent, history: History) -> Admission:
    """Decide whether the call may run. Only effects are limited to one execution."""
    if history.most_calls is not None and history.calls >= history.most_calls:
        return Admission(Decision.DENY, f"the run's budget of {history.most_calls} calls is spent", spent=True)
    rule = intent.rule
    if intent.refusal:
        return Admission(Decision.DENY, intent.refusal)
    if intent.mistake:
        return Admission(Decision.DENY, intent.mistake)
    if rule.decision is Decision.DENY:
        hint = f": {rule.hint}" if rule.hint else ""
        return Admission(Decision.DENY, f"rule '{rule.name}' denies {intent.tool}{hint}")
    stored = _find_stored_result(intent, history)
    if stored is not None:
        return stored
    # A call that a person approved does not wait for others.
    approved = any(call.state is CallState.DENIED and call.answer in APPROVALS for call in history.same_key)
    if intent.waits_for and not approved:
        return Admission(Decision.DENY, f"a crash interrupted these calls; make them again first: {intent.waits_for}")
    if rule.call_class is CallClass.EFFECT:
        return _decide_effect(intent, history)
    if rule.call_class is CallClass.UNKNOWN and (interrupted := _find_interrupted(history)) is not None:
        reason = f"a crash interrupted {intent.tool}, outcome unknown: check first, then call it again"
        return Admission(Decision.DENY, reason, original=interrupted.id)
    # A call that is made again was counted when it was interrupted.
    over_limit = None if intent.replaces else _check_limit(rule, history)
    admitted = over_limit or _decide_repeatable(intent, history)
    return admitted._replace(original=intent.replaces or admitted.original)


def decide_without_asking(intent: Intent, history: History) -> Admission:
    """Decide whether the call may run; one that needs approval is denied for now, and a later attempt may ask."""
    admission = decide_call(intent, history)
    if admission.decision is not Decision.ASK:
        return admission
    flags = format_agreements(intent.parts)
    missing = f"what is missing, and that a person allows it with {flags}" if flags else "what is missing"
    advice = f"continue with the rest of the task, and report at the end {missing}"
    reason = f"{admission.reason}. It is not allowed now, because no one is available to approve it: {advice}"
    return Admission(Decision.DENY, reason, reason_code=ReasonCode.NOT_NOW)


def decide_host_call(intent: Intent, history: History) -> Admission:
    """Decide about an effect of the host itself. A person's flag has approved it, so nothing asks; a deny holds.

    The host remembers all of its effects: that its target was touched before is no reason to ask.
    """
    return decide_without_asking(intent._replace(target=""), history)


def _find_stored_result(intent: Intent, history: History) -> Admission | None:
    """A result that is in the ledger already; returning it has no effect, so it is always allowed."""
    if history.receipt is not None:
        reason = describe_stored(intent.company)
        return Admission(Decision.STORED, reason, original=history.receipt.call_id)
    if intent.rule.replay is not Replay.RELAUNCH:
        return None
    # An agent that made it in this attempt knows the result; if it asks again, it wants to run it again.
    done = (call for call in history.same_key if call.state is CallState.DONE and call.attempt < history.attempt)
    finished = next(done, None)
    if finished is None:
        return None
    return Admission(Decision.STORED, "finished before; this is its output", original=finished.id)


def describe_stored(company: str) -> str:
    """Say that a result is stored, and that the other commands of the call were not run either."""
    if not company:
        return "done before; this is the stored result"
    shown = shorten_text(company, _SHOWN)
    return f"the effect was done before, and this is its stored result; nothing was run: run '{shown}' without it"


def _decide_effect(intent: Intent, history: History) -> Admission:
    open_states = {CallState.PREPARED, CallState.IN_DOUBT}
    for call in sorted(history.same_key, key=lambda call: call.state not in open_states):  # open calls decide first
        admission = _decide_by_earlier(call)
        if admission is not None:
            # An approved call is an effect that was not made yet, so it counts against the rule's limit.
            approved = call.state is CallState.DENIED and admission.decision is Decision.ALLOW
            return (approved and _check_limit(intent.rule, history)) or admission
    # Only now: a stored result, or a repeat of a call that did not happen, is not another effect.
    over_limit = _check_limit(intent.rule, history)
    if over_limit is not None:
        return over_limit
    if history.after_fork is not None:
        reason = f"run {history.after_fork.run_id} did this after the fork; repeating it needs approval"
        return Admission(Decision.ASK, reason, original=history.after_fork.call_id)
    if history.unsettled is not None:
        call = history.unsettled
        reason = f"call {call.id} of run {call.run_id} may have done this already; repeating it needs approval"
        return Admission(Decision.ASK, reason, original=call.id)
    if intent.question:
        return Admission(Decision.ASK, intent.question, original=intent.question_about)
    earlier = _find_forgotten(intent, history)
    if earlier is not None:
        touched = "may have been touched" if earlier.state is CallState.IN_DOUBT else "was already touched"
        reason = f"'{intent.target}' {touched} by call {earlier.id} with other content; this needs approval"
        if intent.target.startswith(DEFAULT_TARGET):
            rule = list_rule_names(intent.rule.name)[0]
            reason += f". With a 'key' and a 'target' in rule '{rule}' its effects could be told apart"
        return Admission(Decision.ASK, reason, original=earlier.id)
    return _decide_by_rule(intent, history)


def _decide_by_earlier(call: Call) -> Admission | None:
    """The decision that follows from an earlier call of the same key, if any."""
    match call.state, call.answer:
        case CallState.PREPARED, _:
            return Admission(Decision.DENY, f"call {call.id} is making the same effect now", original=call.id)
        case CallState.IN_DOUBT, _:
            reason = (
                f"call {call.id} may have done this already; it is in doubt until a person has checked it: "
                "do not make it again now, continue with the rest of the task"
            )
            return Admission(Decision.DENY, reason, original=call.id)
        case _, "skip":
            return Admission(Decision.DENY, f"a person decided to skip it (call {call.id})", original=call.id)
        case _, "deny":  # by a person, or because no one answered in time
            return Admission(Decision.DENY, f"approval was denied (call {call.id})", original=call.id)
        case CallState.DENIED, "allow" | "always":
            return Admission(Decision.ALLOW, f"approval was given (call {call.id})", original=call.id)
        case CallState.VOID, _:
            return Admission(Decision.ALLOW, f"call {call.id} is known not to have happened", original=call.id)
        case CallState.FAILED, _:
            return Admission(Decision.ALLOW, f"call {call.id} is known to have done nothing", original=call.id)
    return None


def _check_limit(rule: Rule, history: History) -> Admission | None:
    if rule.most is None or history.of_rule < rule.most:
        return None
    return Admission(Decision.DENY, f"rule '{rule.name}' allows {rule.most} per run; the run has made that many")


def _find_forgotten(intent: Intent, history: History) -> Call | None:
    """An effect on the same target that the asking session does not remember, or saw fail: it may reword the mail."""
    if not intent.target:
        return None
    for call in history.same_target:
        inherited = bool(intent.run_id) and call.run_id != intent.run_id
        if inherited or call.turn < intent.since_turn or call.state is CallState.IN_DOUBT:
            return call
        # What the session made itself, in an earlier attempt, is covered by `always`.
        covered = history.always is not None and call.state is CallState.DONE
        if call.attempt < history.attempt and not covered:
            return call
    return None


def _decide_by_rule(intent: Intent, history: History) -> Admission:
    if intent.rule.decision is not Decision.ASK:
        return Admission(intent.rule.decision)
    if history.always is not None:
        call = history.always
        reason = f"a person approved rule '{call.rule}' for '{call.target}' in this run (call {call.id})"
        return Admission(Decision.ALLOW, reason, original=call.id)
    return Admission(Decision.ASK, _describe_question(intent))


def _describe_question(intent: Intent) -> str:
    named = intent.target and not has_unknown_part(intent.target)
    touches = f" touches '{intent.target}'" if named else " runs"
    return f"rule '{intent.rule.name}' requires approval before {intent.tool}{touches}"


def _find_interrupted(history: History) -> Call | None:
    """The call that a crash interrupted, unless this attempt was warned of it or it was made again since."""
    for call in history.same_key:
        if call.state is CallState.IN_DOUBT:
            return call
        if call.decision is Decision.DENY and call.original is None:  # it had to wait, which was not a warning
            continue
        if call.decision is not Decision.DENY or call.attempt == history.attempt:
            return None
    return None


def _decide_repeatable(intent: Intent, history: History) -> Admission:
    """Decide a call that may be repeated; if its rule asks, one answer applies to every repeat."""
    if intent.rule.decision is not Decision.ASK and not intent.question:
        return Admission(Decision.ALLOW)
    for call in history.same_key:
        if call.answer == "deny":
            return Admission(Decision.DENY, f"approval was denied (call {call.id})", original=call.id)
        # Without the question it needed no approval, so that it was allowed before says nothing.
        if call.answer in APPROVALS or (call.decision is Decision.ALLOW and not intent.question):
            return Admission(Decision.ALLOW, f"approval was given (call {call.id})", original=call.id)
    if intent.question:
        return Admission(Decision.ASK, intent.question, original=intent.question_about)
    return _decide_by_rule(intent, history)
