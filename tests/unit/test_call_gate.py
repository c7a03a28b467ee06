"""The gate's decision: one table of rows, each a sentence of the design."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.call_gate import History, Intent, admit_observed, decide_call
from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.policy.rule_lookup import UNMATCHED
from jackline.policy.rules import Rule

UNHURRIED = settings(deadline=None)  # a busy machine is no reason to fail

ALLOW, DENY, ASK, STORED = Decision.ALLOW, Decision.DENY, Decision.ASK, Decision.STORED
READ = Rule("look", "tool", CallClass.READ)
LOCAL = Rule("edit", "tool", CallClass.LOCAL)
EFFECT = Rule("mail", "tool", CallClass.EFFECT, target="mail:{to}")
ASKED = EFFECT._replace(decision=ASK)
ASKED_READ = READ._replace(decision=ASK)
ONCE = EFFECT._replace(most=1)
TASK = Rule("task", "tool", CallClass.LOCAL, Replay.RELAUNCH)
NOW = 2  # the attempt in which the gate is asked


def call(state: CallState, answer: str = "", decision: Decision = ALLOW, attempt: int = 1, id: str = "c1") -> Call:
    return Call(
        id=id,
        run_id="run",
        attempt=attempt,
        turn=1,
        step=2,
        occurrence=1,
        tool="tool",
        call_class=CallClass.EFFECT,
        replay=Replay.ASK,
        decision=decision,
        rule="mail",
        door="socket",
        key="k",
        target="mail:a@b",
        input="{}",
        state=state,
        prepared_at=1,
        answer=answer,
    )


RECEIPT = Receipt("c0", "run", "k", "mail:a@b", "mail", "sent", "id-7", "agent", 1)
NOTHING = History(NOW, None, (), (), calls=0, of_rule=0, most_calls=None)


def knows(*same_key: Call, **more: object) -> History:
    return NOTHING._replace(same_key=same_key, **more)  # type: ignore[arg-type]


def intent(rule: Rule, target: str = "mail:a@b") -> Intent:
    return Intent("new", "tool", rule, "k", target, "{}", "socket")


DONE, FAILED, VOID = call(CallState.DONE), call(CallState.FAILED), call(CallState.VOID)
PREPARED, IN_DOUBT = call(CallState.PREPARED), call(CallState.IN_DOUBT)
WARNED = call(CallState.DENIED, decision=DENY, attempt=NOW, id="c2")._replace(original="c1")
HAD_TO_WAIT = WARNED._replace(original=None)
WARNED_BEFORE = WARNED._replace(attempt=1)
UNANSWERED = call(CallState.DENIED, decision=ASK)
ALWAYS = UNANSWERED._replace(id="c5", answer="always")
AGREED, REFUSED = UNANSWERED._replace(answer="allow"), UNANSWERED._replace(answer="deny")


class Row(NamedTuple):
    says: str
    rule: Rule
    history: History
    decision: Decision
    original: str | None = None


ROWS = [
    Row("a read repeats freely", READ, knows(DONE, DONE), ALLOW),
    Row("a read that was cut off repeats freely", READ, knows(IN_DOUBT), ALLOW),
    Row("a local repeats freely, while the same is under way too", LOCAL, knows(PREPARED, FAILED), ALLOW),
    Row("a read that a rule denies", READ._replace(decision=DENY), NOTHING, DENY),
    Row("a read that a person must agree to", ASKED_READ, NOTHING, ASK),
    Row("the same, agreed to", ASKED_READ, knows(AGREED), ALLOW, "c1"),
    Row("the same, refused", ASKED_READ, knows(REFUSED), DENY, "c1"),
    Row("the same, agreed to and made since", ASKED_READ, knows(DONE), ALLOW, "c1"),
    Row("the same, not answered yet", ASKED_READ, knows(UNANSWERED), ASK),
    Row("an unknown call runs", UNMATCHED, NOTHING, ALLOW),
    Row("an unknown call repeats freely while the run lives", UNMATCHED, knows(DONE, PREPARED), ALLOW),
    Row("cut off by a crash: denied once", UNMATCHED, knows(IN_DOUBT), DENY, "c1"),
    Row("and then allowed", UNMATCHED, knows(WARNED, IN_DOUBT), ALLOW),
    Row("having to wait was no warning", UNMATCHED, knows(HAD_TO_WAIT, IN_DOUBT), DENY, "c1"),
    Row("warned in an attempt that died: again", UNMATCHED, knows(WARNED_BEFORE, IN_DOUBT), DENY, "c1"),
    Row("made again since: free", UNMATCHED, knows(DONE, WARNED_BEFORE, IN_DOUBT), ALLOW),
    Row("cut off twice: denied again", UNMATCHED, knows(IN_DOUBT._replace(id="c3"), WARNED), DENY, "c3"),
    Row("an unknown call may be asked about", UNMATCHED._replace(decision=ASK), NOTHING, ASK),
    Row("an effect that its rule allows", EFFECT, NOTHING, ALLOW),
    Row("an effect is asked about by default", ASKED, NOTHING, ASK),
    Row("an effect that its rule denies", EFFECT._replace(decision=DENY), knows(receipt=RECEIPT), DENY),
    Row("done, with a receipt: the stored result", EFFECT, knows(DONE, receipt=RECEIPT), STORED, "c0"),
    Row("the same where a person is asked", ASKED, knows(DONE, receipt=RECEIPT), STORED, "c0"),
    Row("a receipt of an ancestor", EFFECT, knows(receipt=RECEIPT), STORED, "c0"),
    Row("the same effect is under way", EFFECT, knows(PREPARED), DENY, "c1"),
    Row("in doubt", EFFECT, knows(IN_DOUBT), DENY, "c1"),
    Row("in doubt, asked again meanwhile", EFFECT, knows(WARNED, IN_DOUBT), DENY, "c1"),
    Row("a later word does not cover a doubt", EFFECT, knows(VOID._replace(id="c2"), IN_DOUBT), DENY, "c1"),
    Row("void: known not to have happened", EFFECT, knows(VOID), ALLOW, "c1"),
    Row("void, and asked about by default: agreed before", ASKED, knows(VOID), ALLOW, "c1"),
    Row("failed with evidence that nothing happened", EFFECT, knows(FAILED), ALLOW, "c1"),
    Row("a person said retry", EFFECT, knows(VOID._replace(answer="retry")), ALLOW, "c1"),
    Row("a person said skip", EFFECT, knows(call(CallState.ABANDONED, "skip")), DENY, "c1"),
    Row("a person said deny", ASKED, knows(REFUSED), DENY, "c1"),
    Row("a person said allow", ASKED, knows(AGREED), ALLOW, "c1"),
    Row("allowed, though asked once more", ASKED, knows(UNANSWERED, AGREED), ALLOW, "c1"),
    Row("asked, not answered yet", ASKED, knows(UNANSWERED), ASK),
    Row("allowed, then cut off", ASKED, knows(IN_DOUBT, AGREED), DENY, "c1"),
    Row("other content for a target of an earlier attempt", EFFECT, knows(same_target=(DONE,)), ASK, "c1"),
    Row("for a target in doubt", EFFECT, knows(same_target=(IN_DOUBT,)), ASK, "c1"),
    Row("for a target of this attempt", EFFECT, knows(same_target=(DONE._replace(attempt=NOW),)), ALLOW),
    Row("unless that is in doubt", EFFECT, knows(same_target=(IN_DOUBT._replace(attempt=NOW),)), ASK, "c1"),
    Row(
        "for a target of both",
        EFFECT,
        knows(same_target=(DONE._replace(attempt=NOW, id="c9"), DONE)),
        ASK,
        "c1",
    ),
    Row(
        "a moved target that a person agreed to",
        EFFECT,
        knows(AGREED._replace(id="c4"), same_target=(DONE,)),
        ALLOW,
        "c4",
    ),
    Row("always, for the rule and target", ASKED, knows(always=ALWAYS), ALLOW, "c5"),
    Row("always, asked again for a read", ASKED_READ, knows(always=ALWAYS), ALLOW, "c5"),
    Row("always does not cover a denial of the same", ASKED, knows(REFUSED, always=ALWAYS), DENY, "c1"),
    Row("always covers a target of an earlier attempt", ASKED, knows(always=ALWAYS, same_target=(DONE,)), ALLOW, "c5"),
    Row("not one in doubt", ASKED, knows(always=ALWAYS, same_target=(DONE, IN_DOUBT)), ASK, "c1"),
    Row("always stays under the rule's max", ASKED._replace(most=1), knows(always=ALWAYS, of_rule=1), DENY),
    Row(
        "always is not for a fork",
        ASKED,
        knows(always=ALWAYS, after_fork=RECEIPT),
        ASK,
        "c0",
    ),
    Row("room under the rule's max", EFFECT._replace(most=2), knows(of_rule=1), ALLOW),
    Row("the rule's max is reached", EFFECT._replace(most=2), knows(of_rule=2), DENY),
    Row("max of a read", READ._replace(most=1), knows(of_rule=1), DENY),
    Row("max of an unknown", UNMATCHED._replace(most=1), knows(of_rule=1), DENY),
    Row("a stored result is not one more", ONCE, knows(of_rule=1, receipt=RECEIPT), STORED, "c0"),
    Row("nor is a repeat of what did not happen", ONCE, knows(VOID, of_rule=1), ALLOW, "c1"),
    Row("an approved call is one more", ONCE, knows(AGREED, of_rule=1), DENY),
    Row("a subagent's task", TASK, NOTHING, ALLOW),
    Row("finished in an earlier attempt: its output", TASK, knows(DONE), STORED, "c1"),
    Row("the same that was a relaunch itself", TASK, knows(DONE._replace(id="c8", original="c1")), STORED, "c8"),
    Row("finished in this attempt: who asks again wants it again", TASK, knows(DONE._replace(attempt=NOW)), ALLOW),
    Row("cut off in an earlier attempt: again", TASK, knows(call(CallState.ABANDONED)), ALLOW),
    Row("done by the parent after the fork", EFFECT, knows(after_fork=RECEIPT), ASK, "c0"),
    Row("the same, agreed to", EFFECT, knows(AGREED, after_fork=RECEIPT), ALLOW, "c1"),
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.rule.call_class}: {row.says}" for row in ROWS])
def test_the_table(row: Row) -> None:
    admission = decide_call(intent(row.rule), row.history)
    assert (admission.decision, admission.original, admission.spent) == (row.decision, row.original, False)
    assert admission.reason or admission.decision is ALLOW, "a model must be told why"


def test_always_does_not_cover_what_the_asking_session_does_not_know() -> None:
    history = knows(always=ALWAYS, same_target=(DONE,))
    assert decide_call(intent(ASKED)._replace(since_turn=2), history).decision is ASK


def test_a_rule_without_a_target_never_finds_it_moved() -> None:
    assert decide_call(intent(EFFECT, target=""), knows(same_target=(DONE,))).decision is ALLOW


@pytest.mark.parametrize("rule", [READ, LOCAL, UNMATCHED, EFFECT, ASKED])
def test_the_call_budget_stops_the_run_exactly_at_its_number(rule: Rule) -> None:
    assert not decide_call(intent(rule), knows(calls=9, most_calls=10)).spent
    over = decide_call(intent(rule), knows(calls=10, most_calls=10))
    assert (over.decision, over.spent) == (DENY, True)
    assert not admit_observed(intent(rule), knows(calls=9, most_calls=10)).spent
    observed = admit_observed(intent(rule), knows(calls=10, most_calls=10))
    assert (observed.decision, observed.spent) == (ALLOW, True)


def test_reasons_are_words_a_model_can_act_on() -> None:
    assert "check first" in decide_call(intent(UNMATCHED), knows(IN_DOUBT)).reason
    assert "'mail:a@b'" in decide_call(intent(ASKED), NOTHING).reason
    assert "c1" in decide_call(intent(EFFECT), knows(IN_DOUBT)).reason


CALLS = st.builds(
    call,
    st.sampled_from(CallState),
    st.sampled_from(["", "allow", "always", "deny", "skip", "retry"]),
    st.sampled_from(Decision),
    st.integers(1, NOW),
)
HISTORIES = st.builds(
    History,
    attempt=st.just(NOW),
    receipt=st.sampled_from([None, RECEIPT]),
    same_key=st.lists(CALLS, max_size=4).map(tuple),
    same_target=st.lists(CALLS, max_size=2).map(tuple),
    calls=st.integers(0, 3),
    of_rule=st.integers(0, 3),
    most_calls=st.sampled_from([None, 2]),
    always=st.sampled_from([None, ALWAYS]),
)
RULES = st.builds(
    Rule._replace,
    st.sampled_from([READ, LOCAL, UNMATCHED, EFFECT]),
    decision=st.sampled_from([ALLOW, DENY, ASK]),
    most=st.sampled_from([None, 1]),
)


@UNHURRIED
@given(RULES, HISTORIES)
def test_an_effect_never_runs_while_it_may_have_happened(rule: Rule, history: History) -> None:
    admission = decide_call(intent(rule), history)
    unsettled = {one.state for one in history.same_key} & {CallState.PREPARED, CallState.IN_DOUBT}
    if rule.call_class is CallClass.EFFECT and (unsettled or history.receipt):
        assert admission.decision in {DENY, STORED}
    if rule.decision is DENY:
        assert admission.decision is DENY
    assert (admission.decision is STORED) <= (history.receipt is not None)


@pytest.mark.parametrize("rule", [READ, LOCAL, UNMATCHED, EFFECT, ASKED, TASK])
def test_everything_waits_until_what_was_cut_off_is_made_again(rule: Rule) -> None:
    admission = decide_call(intent(rule)._replace(waits_for="pytest -q"), NOTHING)
    assert admission.decision is DENY
    assert "pytest -q" in admission.reason


@pytest.mark.parametrize(
    ("rule", "history", "decision"),
    [(EFFECT, knows(receipt=RECEIPT), STORED), (ASKED, knows(AGREED), ALLOW), (TASK, knows(DONE), STORED)],
    ids=["a stored result", "an approved call", "a finished task"],
)
def test_what_touches_nothing_or_was_agreed_to_does_not_wait(rule: Rule, history: History, decision: Decision) -> None:
    assert decide_call(intent(rule)._replace(waits_for="pytest -q"), history).decision is decision


def test_a_call_that_makes_another_again_names_it() -> None:
    assert decide_call(intent(LOCAL)._replace(replaces="c5"), NOTHING).original == "c5"


def test_a_call_that_makes_another_again_is_not_one_more() -> None:
    once = LOCAL._replace(most=1)
    assert decide_call(intent(once), knows(of_rule=1)).decision is DENY
    assert decide_call(intent(once)._replace(replaces="c5"), knows(of_rule=1)).decision is ALLOW


def test_a_call_that_nobody_holds_names_the_one_that_it_makes_again() -> None:
    assert admit_observed(intent(LOCAL)._replace(replaces="c5"), NOTHING).original == "c5"


def test_a_malformed_call_is_denied_with_its_hint() -> None:
    admission = decide_call(intent(EFFECT)._replace(mistake="Write needs 'content'"), knows(receipt=RECEIPT))
    assert (admission.decision, admission.reason) == (DENY, "Write needs 'content'")


def test_a_denied_agent_is_told_what_it_may_do_instead() -> None:
    rule = EFFECT._replace(decision=DENY, hint="push to a branch of your own")
    assert "push to a branch of your own" in decide_call(intent(rule), NOTHING).reason


def test_a_target_that_the_session_does_not_remember_is_asked_about() -> None:
    touched = knows(same_target=(DONE._replace(attempt=NOW, turn=1),))
    assert decide_call(intent(EFFECT)._replace(since_turn=2), touched).decision is ASK
    assert decide_call(intent(EFFECT)._replace(since_turn=1), touched).decision is ALLOW


def test_a_target_that_the_parent_of_a_fork_touched_is_asked_about() -> None:
    touched = knows(same_target=(DONE._replace(attempt=NOW, run_id="parent"),))
    assert decide_call(intent(EFFECT)._replace(run_id="run"), touched).decision is ASK
