"""The ledger: intents, outcomes, receipts and answers; the same on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.call_gate import Admission, History, Intent, RuleLimit, decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Call, Lease, Receipt, RunStatus
from jackline.domain.states import CallClass, CallState, Decision, RunState, WaitReason
from jackline.errors import NotFound, Refused
from jackline.policy.rules import Rule
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, READ, UNKNOWN, FakeClock, begun, claimed, history_of, intent, made

ASKED = MAIL._replace(decision=Decision.ASK)


def _admit(store: Store, lease: Lease, wanted: Intent, at: int = AT) -> tuple[Call, Admission, Receipt | None]:
    return store.ledger.admit(lease, wanted, decide_call, (1, 2), at)


def _settle(store: Store, lease: Lease, call_id: str, change: str, **more: Any) -> Call:
    return store.ledger.settle(lease, Settlement(call_id, change, AT + 8, **more))


def _wait(store: Store, lease: Lease, reason: WaitReason) -> None:
    waiting = RunStatus(state=RunState.WAITING, reason=reason, detail="for you")
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting", {"reason": reason}),), waiting))


def test_an_intent_is_written_before_it_is_answered(store: Store) -> None:
    lease = begun(store)
    call, admission, receipt = _admit(store, lease, intent(agent_call="toolu-1"))
    assert (admission.decision, receipt) == (Decision.ALLOW, None)
    assert call == store.calls.get("run-1", "call-1")
    assert store.calls.list_open("run-1") == store.calls.list_all("run-1") == [call]
    assert (call.state, call.turn, call.step, call.attempt) == (CallState.PREPARED, 1, 2, 1)
    assert (call.occurrence, call.finished_at, call.agent_call) == (1, None, "toolu-1")
    run = store.runs.get("run-1")
    assert run is not None
    assert run.status.spent.calls == 1
    assert store.records.list_events("run-1")[-1].kind == "call.prepared"


@pytest.mark.parametrize(
    ("decision", "state", "kind", "finished"),
    [
        (Decision.DENY, CallState.DENIED, "call.denied", AT),
        (Decision.ASK, CallState.DENIED, "call.asked", None),
        (Decision.STORED, CallState.DONE, "call.stored", AT),
    ],
)
def test_what_may_not_run_is_written_down_too(
    store: Store, decision: Decision, state: CallState, kind: str, finished: int | None
) -> None:
    lease = begun(store)

    def say(_: Intent, __: History) -> Admission:
        return Admission(decision, "because", "call-0")

    call, *_ = store.ledger.admit(lease, intent(), say, (1, 2), AT)
    assert (call.state, call.decision, call.reason, call.original) == (state, decision, "because", "call-0")
    assert call.finished_at == finished
    assert call == store.calls.get("run-1", "call-1")
    assert store.calls.list_open("run-1") == []
    assert store.records.list_events("run-1")[-1].kind == kind


def test_a_call_id_is_used_once(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent())
    with pytest.raises(Refused, match="call-1 is in the ledger already"):
        _admit(store, lease, intent())
    assert len(store.calls.list_all("run-1")) == 1
    assert store.verify.check_all() == []


def test_a_refusal_to_decide_writes_nothing(store: Store) -> None:
    lease = begun(store)
    history_of(store, lease, intent())
    assert store.calls.list_all("run-1") == []


@pytest.mark.parametrize(
    ("change", "state", "finished"),
    [
        ("succeed", CallState.DONE, AT + 8),
        ("fail", CallState.FAILED, AT + 8),
        ("doubt", CallState.IN_DOUBT, None),
        ("abandon", CallState.ABANDONED, AT + 8),
    ],
)
def test_an_outcome_is_written_once(store: Store, change: str, state: CallState, finished: int | None) -> None:
    lease = begun(store)
    _admit(store, lease, intent(rule=READ))
    call = _settle(store, lease, "call-1", change, output="out", exit_code=3, reason="why")
    assert (call.state, call.output, call.exit_code, call.reason) == (state, "out", 3, "why")
    assert call.finished_at == finished
    assert call == store.calls.get("run-1", "call-1")
    assert store.records.list_events("run-1")[-1].kind == f"call.{state}"
    with pytest.raises(Refused, match="call call-1 is settled"):
        _settle(store, lease, "call-1", "succeed")
    assert store.calls.list_receipts("run-1") == []
    assert store.verify.check_all() == []


def test_a_doubt_is_settled_either_way(store: Store) -> None:
    lease = begun(store)
    for call_id, change, state in (("a", "happened", CallState.DONE), ("b", "did_not", CallState.VOID)):
        _admit(store, lease, intent(call_id, key=call_id, target=""))
        _settle(store, lease, call_id, "doubt")
        assert store.calls.list_open("run-1")[0].id == call_id
        call = _settle(store, lease, call_id, change, origin="probe", external_id="pr-1")
        assert call.state is state
    (receipt,) = store.calls.list_receipts("run-1")
    assert (receipt.call_id, receipt.origin, receipt.external_id) == ("a", "probe", "pr-1")


def test_an_effect_that_succeeded_has_its_receipt(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent())
    _settle(store, lease, "call-1", "succeed", output="sent", external_id="message-7")
    expected = Receipt("call-1", "run-1", "key-1", "mail:bob", "mails", "sent", "message-7", "agent", AT + 8)
    assert store.calls.list_receipts("run-1") == [expected]
    call, admission, receipt = _admit(store, lease, intent("call-2"))
    assert (admission.decision, admission.original, receipt) == (Decision.STORED, "call-1", expected)
    assert (call.state, call.original, call.occurrence) == (CallState.DONE, "call-1", 2)
    assert store.verify.check_all() == []


def test_a_second_receipt_for_one_key_is_told_and_not_lost(store: Store) -> None:
    lease = begun(store)

    def let_it(_: Intent, __: History) -> Admission:
        return Admission(Decision.ALLOW)

    for call_id in ("call-1", "call-2"):
        store.ledger.admit(lease, intent(call_id), let_it, (1, 1), AT)
        assert _settle(store, lease, call_id, "succeed").state is CallState.DONE
    assert [receipt.call_id for receipt in store.calls.list_receipts("run-1")] == ["call-1"]
    assert '"receipt":false' in store.records.list_events("run-1")[-1].data


def test_a_fork_knows_the_receipts_of_its_ancestors_only(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent())
    _settle(store, lease, "call-1", "succeed")
    made(store, "child", parent="run-1")
    made(store, "grandchild", parent="child")
    made(store, "stranger")
    assert (
        history_of(store, claimed(store, "grandchild"), intent("c2")).receipt == store.calls.list_receipts("run-1")[0]
    )
    assert history_of(store, claimed(store, "stranger"), intent("c3")).receipt is None
    sibling = made(store, "sibling", parent="run-1")
    other = claimed(store, sibling.id)
    _admit(store, other, intent("c4", key="key-2", target=""))
    _settle(store, other, "c4", "succeed")
    assert history_of(store, claimed(store, "child"), intent("c5", key="key-2")).receipt is None


def test_settling_needs_a_call_of_this_run(store: Store) -> None:
    lease = begun(store)
    other = begun(store, "run-2")
    _admit(store, other, intent("theirs"))
    for call_id in ("nothing", "theirs"):
        with pytest.raises(NotFound, match=f"no call matches '{call_id}'"):
            _settle(store, lease, call_id, "succeed")


def test_an_unknown_change_is_refused(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent())
    with pytest.raises(Refused, match="does not allow 'explode'"):
        _settle(store, lease, "call-1", "explode")


def test_history_tells_what_bears_on_an_effect(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    _admit(store, lease, intent("a", key="other"))
    _settle(store, lease, "a", "doubt")
    _admit(store, lease, intent("b", rule=MAIL._replace(decision=Decision.DENY)))
    _admit(store, lease, intent("c", key="third", target="mail:eve"))
    clock.now += LEASE_MS
    second = claimed(store, name="worker-2")
    history = history_of(store, second, intent("d"))
    assert (history.attempt, history.calls, history.most_calls) == (2, 3, 10_000)
    assert [call.id for call in history.same_target] == ["a"]
    assert history.same_key == ()
    assert decide_call(intent("d"), history).decision is Decision.ASK


def test_a_refusal_by_a_person_is_not_crowded_out_by_denials(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("asked", rule=ASKED))
    _wait(store, lease, WaitReason.APPROVAL)
    store.approvals.answer("run-1", "asked", "deny", AT)
    lease = claimed(store)
    for number in range(30):
        call, admission, _ = _admit(store, lease, intent(f"again-{number}"))
        assert (call.state, admission.original) == (CallState.DENIED, "asked")


def test_an_unknown_call_in_doubt_is_denied_once_however_often_it_ran(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    _admit(store, lease, intent("cut", rule=UNKNOWN))
    clock.now += LEASE_MS
    lease = claimed(store, name="worker-2")
    _settle(store, lease, "cut", "doubt")
    decisions = []
    for number in range(30):
        call, admission, _ = _admit(store, lease, intent(f"again-{number}", rule=UNKNOWN))
        decisions.append(admission.decision)
        if call.state is CallState.PREPARED:
            _settle(store, lease, call.id, "succeed")
    assert decisions == [Decision.DENY] + [Decision.ALLOW] * 29


def test_what_repeats_freely_is_not_counted(store: Store) -> None:
    lease = begun(store)
    for call_id in ("a", "b"):
        call, admission, _ = _admit(store, lease, intent(call_id, rule=READ))
        assert (admission.decision, call.occurrence) == (Decision.ALLOW, 0)
    assert history_of(store, lease, intent("c", rule=READ)).same_key == ()


def test_of_an_unknown_call_only_the_newest_of_its_key_is_read_back(store: Store) -> None:
    lease = begun(store)
    for call_id in ("a", "b", "c"):
        _admit(store, lease, intent(call_id, rule=UNKNOWN))
        _settle(store, lease, call_id, "succeed")
    assert [call.id for call in history_of(store, lease, intent("d", rule=UNKNOWN)).same_key] == ["c"]
    waiting = intent("e", rule=UNKNOWN)._replace(waits_for="another call")  # a person may have let it go first
    assert [call.id for call in history_of(store, lease, waiting).same_key] == ["c", "b", "a"]


def test_where_there_is_a_receipt_no_other_call_of_its_key_is_read_back(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("a"))
    _settle(store, lease, "a", "succeed", output="sent")
    _admit(store, lease, intent("b"))
    history = history_of(store, lease, intent("c"))
    assert history.receipt is not None
    assert (history.receipt.call_id, history.same_key) == ("a", ())
    assert decide_call(intent("c"), history).original == "a"


@pytest.mark.parametrize(("verdict", "decision"), [("allow", Decision.ALLOW), ("deny", Decision.DENY)])
def test_a_person_who_was_asked_about_a_read_is_asked_once(store: Store, verdict: str, decision: Decision) -> None:
    rule = READ._replace(decision=Decision.ASK)
    lease = begun(store)
    asked = [_admit(store, lease, intent(call_id, rule=rule))[0] for call_id in ("a", "b")]
    assert [(call.state, call.occurrence) for call in asked] == [(CallState.DENIED, 1), (CallState.DENIED, 2)]
    _wait(store, lease, WaitReason.APPROVAL)
    store.approvals.answer("run-1", "a", verdict, AT)
    lease = claimed(store)
    assert [_admit(store, lease, intent(call_id, rule=rule))[1].decision for call_id in ("c", "d")] == [decision] * 2


def test_what_this_attempt_did_to_a_target_is_its_own_business(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    for call_id in ("a", "b"):
        _admit(store, lease, intent(call_id, key=call_id))
        _settle(store, lease, call_id, "succeed")
    assert history_of(store, lease, intent("c")).same_target == ()
    clock.now += LEASE_MS
    second = claimed(store, name="worker-2")
    store.ledger.admit(second, intent("d", key="d"), lambda *_: Admission(Decision.ALLOW), (1, 2), AT)
    _settle(store, second, "d", "succeed")
    assert [call.id for call in history_of(store, second, intent("e")).same_target] == ["a", "b"]


def test_a_target_that_this_attempt_left_in_doubt_counts(store: Store) -> None:
    lease = begun(store)
    for call_id, change in (("a", "succeed"), ("b", "doubt")):
        _admit(store, lease, intent(call_id, key=call_id))
        _settle(store, lease, call_id, change)
    assert [call.id for call in history_of(store, lease, intent("c")).same_target] == ["b"]


def test_two_runs_may_name_their_calls_alike(store: Store) -> None:
    for run_id, change, state in (("run-1", "succeed", CallState.DONE), ("run-2", "doubt", CallState.IN_DOUBT)):
        lease = begun(store, run_id)
        _admit(store, lease, intent())
        assert _settle(store, lease, "call-1", change).state is state
    states = [call.state for run_id in ("run-1", "run-2") if (call := store.calls.get(run_id, "call-1"))]
    assert states == [CallState.DONE, CallState.IN_DOUBT]
    assert store.calls.get("run-3", "call-1") is None
    assert store.verify.check_all() == []


def test_a_rule_s_limit_is_counted_by_the_ledger(store: Store) -> None:
    lease = begun(store)
    rule = Rule("twice", "poke", CallClass.LOCAL, most=2)
    decisions = [_admit(store, lease, intent(f"c{number}", rule))[1].decision for number in range(3)]
    assert decisions == [Decision.ALLOW, Decision.ALLOW, Decision.DENY]


def test_a_rule_s_limit_counts_every_call_that_it_met_in(store: Store) -> None:
    """Another command beside it makes another name, and is no way around the limit."""
    lease = begun(store)
    names = ("mail", "mail + others", "git.push + mail", "email", "mail + read")
    limits = (RuleLimit("mail", 3),)
    rules = [MAIL._replace(name=name, most=3) for name in names]
    wishes = [intent(f"c{at}", rule, key=f"k{at}", limits=limits) for at, rule in enumerate(rules)]
    wishes[3] = wishes[3]._replace(limits=(RuleLimit("email", 3),))
    decisions = [_admit(store, lease, wish)[1].decision for wish in wishes]
    assert decisions == [Decision.ALLOW, Decision.ALLOW, Decision.ALLOW, Decision.ALLOW, Decision.DENY]


def test_of_several_limits_the_one_that_is_reached_counts(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("c1", MAIL._replace(name="push", most=5), key="k1", limits=(RuleLimit("push", 5),)))
    both = MAIL._replace(name="mail + push", most=1)
    fresh = intent("c2", both, key="k2", limits=(RuleLimit("mail", 1), RuleLimit("push", 5)))
    assert _admit(store, lease, fresh)[1].decision is Decision.ALLOW
    again = fresh._replace(call_id="c3", key="k3")
    assert _admit(store, lease, again)[1].decision is Decision.DENY
    twice = intent("c4", MAIL._replace(name="call", most=1), key="k4", limits=(RuleLimit("call", 1, times=2),))
    assert _admit(store, lease, twice)[1].decision is Decision.DENY


def test_what_is_known_not_to_have_happened_does_not_count_against_a_rule_s_limit(store: Store) -> None:
    lease = begun(store)
    rule = MAIL._replace(most=1)
    _admit(store, lease, intent("c1", rule, key="k1"))
    store.ledger.settle(lease, Settlement("c1", "doubt", AT))
    assert _admit(store, lease, intent("c2", rule, key="k2"))[1].decision is Decision.DENY
    store.ledger.settle(lease, Settlement("c1", "did_not", AT, origin="probe"))
    assert _admit(store, lease, intent("c3", rule, key="k3"))[1].decision is Decision.ALLOW


def test_the_call_budget_is_counted_by_the_ledger(store: Store) -> None:
    from jackline.domain.limits import Limits

    made(store, spec={"limits": Limits(calls=1)})
    lease = claimed(store)
    assert _admit(store, lease, intent("a", READ))[1].decision is Decision.ALLOW
    assert _admit(store, lease, intent("b", READ))[1].spent is True


def _in_doubt(store: Store, *call_ids: str) -> Lease:
    lease = begun(store)
    for call_id in call_ids:
        _admit(store, lease, intent(call_id, key=f"key of {call_id}", target=""))
        _settle(store, lease, call_id, "doubt")
    _wait(store, lease, WaitReason.IN_DOUBT)
    return lease


@pytest.mark.parametrize(
    ("verdict", "state", "receipts"),
    [
        ("happened", CallState.DONE, 1),
        ("did-not", CallState.VOID, 0),
        ("retry", CallState.VOID, 0),
        ("skip", CallState.ABANDONED, 0),
    ],
)
def test_a_person_judges_a_doubt(store: Store, verdict: str, state: CallState, receipts: int) -> None:
    _in_doubt(store, "call-1")
    call, run = store.approvals.answer("run-1", "call-1", verdict, AT + 50)
    assert (call.state, call.answer, call.finished_at) == (state, verdict, AT + 50)
    assert call == store.calls.get("run-1", "call-1")
    assert (run.status.state, run.status.reason, run.status.detail) == (RunState.QUEUED, None, "")
    assert run == store.runs.get("run-1")
    assert [receipt.origin for receipt in store.calls.list_receipts("run-1")] == ["person"] * receipts
    kinds = [(event.kind, event.actor) for event in store.records.list_events("run-1")[-2:]]
    assert kinds == [(f"call.{state}", "person"), ("run.queued", "person")]
    assert store.verify.check_all() == []
    again = _admit(store, claimed(store), intent("call-2", key="key of call-1", target=""))[1].decision
    expected = {"happened": Decision.STORED, "skip": Decision.DENY}
    assert again is expected.get(verdict, Decision.ALLOW)


def test_a_run_wakes_only_when_nothing_else_is_open(store: Store) -> None:
    _in_doubt(store, "a", "b")
    assert store.approvals.answer("run-1", "a", "did-not", AT)[1].status.state is RunState.WAITING
    assert store.approvals.answer("run-1", "b", "did-not", AT)[1].status.state is RunState.QUEUED
    assert store.verify.check_all() == []


def test_an_unknown_call_in_doubt_keeps_no_run_asleep(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("cut", rule=UNKNOWN, key="u"))
    _settle(store, lease, "cut", "doubt")
    _admit(store, lease, intent("mail"))
    _settle(store, lease, "mail", "doubt")
    _wait(store, lease, WaitReason.IN_DOUBT)
    assert store.approvals.answer("run-1", "mail", "skip", AT)[1].status.state is RunState.QUEUED


@pytest.mark.parametrize(("verdict", "decision"), [("allow", Decision.ALLOW), ("deny", Decision.DENY)])
def test_a_person_answers_what_was_asked(store: Store, verdict: str, decision: Decision) -> None:
    lease = begun(store)
    _admit(store, lease, intent("asked", ASKED))
    _admit(store, lease, intent("asked again", ASKED))
    _wait(store, lease, WaitReason.APPROVAL)
    call, run = store.approvals.answer("run-1", "asked", verdict, AT + 50)
    assert (call.state, call.answer, run.status.state) == (CallState.DENIED, verdict, RunState.QUEUED)
    assert store.records.list_events("run-1")[-2].kind == "call.answered"
    assert _admit(store, claimed(store), intent("next", ASKED))[1].decision is decision
    assert store.verify.check_all() == []


def test_a_run_that_waits_for_something_else_stays_asleep(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("asked", ASKED))
    _wait(store, lease, WaitReason.BUDGET)
    assert store.approvals.answer("run-1", "asked", "allow", AT)[1].status.state is RunState.WAITING
    assert store.verify.check_all() == []


def test_an_answer_waits_for_the_worker(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    _admit(store, lease, intent())
    _settle(store, lease, "call-1", "doubt")
    with pytest.raises(Refused, match="being worked on by worker-1"):
        store.approvals.answer("run-1", "call-1", "happened", AT)
    clock.now += LEASE_MS
    call, run = store.approvals.answer("run-1", "call-1", "happened", AT)
    assert (call.state, run.status.state) == (CallState.DONE, RunState.RUNNING)


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("maybe", "'maybe' is not an answer; use happened, did-not, retry, skip, allow, always, deny"),
        ("allow", "call-1 is in doubt: answer happened, did-not, retry, skip"),
    ],
)
def test_an_answer_that_does_not_fit_says_what_would(store: Store, verdict: str, said: str) -> None:
    _in_doubt(store, "call-1")
    with pytest.raises(Refused, match=said):
        store.approvals.answer("run-1", "call-1", verdict, AT)


def test_an_asked_call_takes_no_judgement_and_only_one_answer(store: Store) -> None:
    lease = begun(store)
    _admit(store, lease, intent("asked", ASKED))
    _wait(store, lease, WaitReason.APPROVAL)
    with pytest.raises(Refused, match="asked needs approval: answer allow, always, deny"):
        store.approvals.answer("run-1", "asked", "happened", AT)
    store.approvals.answer("run-1", "asked", "allow", AT)
    with pytest.raises(Refused, match="there is nothing to answer"):
        store.approvals.answer("run-1", "asked", "deny", AT)


def test_an_answer_needs_a_call_of_this_run(store: Store) -> None:
    _in_doubt(store, "call-1")
    made(store, "run-2")
    with pytest.raises(NotFound):
        store.approvals.answer("run-2", "call-1", "happened", AT)
