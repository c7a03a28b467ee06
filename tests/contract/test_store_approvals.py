"""Open calls of the ledger: forced calls, approvals, timeouts, cancels; and the tally."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.call_gate import Admission, History, Intent, decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Call, Lease, RunStatus
from jackline.domain.run_totals import Tally
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, CallState, Decision, ReasonCode, Replay, RunState, WaitReason
from jackline.engine import recovery
from jackline.engine.probes.prober import Prober
from jackline.errors import Fenced, Refused
from jackline.policy.rules import Rule
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, READ, UNKNOWN, FakeClock, begun, claimed, intent, made

ASKED = MAIL._replace(decision=Decision.ASK)
SENDS = MAIL._replace(replay=Replay.IDEMPOTENT)
TASK = Rule("tasks", "task", CallClass.LOCAL, Replay.RELAUNCH)
POKE = Rule("pokes", "poke", CallClass.LOCAL)


def _did_not(call_id: str, code: str) -> Settlement:
    return Settlement(call_id, "did_not", AT + 6, origin="rule", reason="because", reason_code=code)


def _prepared(store: Store, lease: Lease, call_id: str, rule: Rule = READ, **more: Any) -> Call:
    def let_it(_: Intent, __: History) -> Admission:
        return Admission(Decision.ALLOW, original=original)

    original = more.pop("original", None)
    wanted = intent(call_id, rule, **{"key": f"key of {call_id}", **more})
    return store.ledger.admit(lease, wanted, let_it, (1, 2), AT)[0]


def _cut_off(store: Store, lease: Lease, call_id: str, change: str = "abandon", reason: str = "cut off") -> Call:
    return store.ledger.settle(lease, Settlement(call_id, change, AT + 5, origin="recovery", reason=reason))


def _asked(store: Store, lease: Lease, call_id: str, key: str, at: int) -> Call:
    return store.ledger.admit(lease, intent(call_id, ASKED, key=key, target=""), decide_call, (1, 2), at)[0]


def _wait(store: Store, lease: Lease, reason: WaitReason) -> None:
    fact = Fact("run.waiting", {"reason": reason})
    store.leases.write_change(lease, RunChange(AT, (fact,), RunStatus(state=RunState.WAITING, reason=reason)))


# forced calls


def test_what_a_recovery_gave_up_is_forced_until_it_was_made_again(store: Store) -> None:
    lease = begun(store)
    for call_id, rule in (("read", READ), ("task", TASK), ("poke", POKE)):
        _prepared(store, lease, call_id, rule)
        _cut_off(store, lease, call_id)
    assert [call.id for call in store.calls.list_forced("run-1")] == ["read", "task"]  # a poke's replay is to ask
    _prepared(store, lease, "read again", original="read")
    assert [call.id for call in store.calls.list_forced("run-1")] == ["read", "task"]
    store.ledger.settle(lease, Settlement("read again", "succeed", AT))
    _prepared(store, lease, "task again", TASK, original="task")
    store.ledger.settle(lease, Settlement("task again", "fail", AT))
    assert store.calls.list_forced("run-1") == store.calls.list_forced("nobody") == []


def test_what_a_turn_hung_in_is_not_forced_on_the_agent_again(store: Store) -> None:
    lease = begun(store)
    _prepared(store, lease, "hangs")
    prober = Prober(Spec("do it", "/"), {}, 1.0, lambda: pytest.fail("nothing is to be probed"))
    assert recovery.settle_open_calls(store, lease, prober, lambda: AT, host="host-1", gave_up=True) == []
    assert [call.state for call in store.calls.list_all("run-1")] == [CallState.ABANDONED]
    assert store.calls.list_forced("run-1") == []


def test_an_effect_that_may_be_sent_again_with_its_key_is_forced(store: Store) -> None:
    lease = begun(store)
    for call_id, code in (("a", ReasonCode.SEND_AGAIN), ("b", "")):
        _prepared(store, lease, call_id, SENDS)
        _cut_off(store, lease, call_id, "doubt")
        store.ledger.settle(lease, _did_not(call_id, code))
    assert [call.id for call in store.calls.list_forced("run-1")] == ["a"]


def test_effects_that_did_not_happen_and_that_the_agent_does_not_know_of(store: Store) -> None:
    lease = begun(store)
    for call_id in ("probed", "answered", "again"):
        _prepared(store, lease, call_id, MAIL)
        _cut_off(store, lease, call_id, "doubt")
    store.ledger.settle(lease, _did_not("probed", ""))
    _wait(store, lease, WaitReason.IN_DOUBT)
    for call_id in ("answered", "again"):
        store.approvals.answer("run-1", call_id, "retry", AT + 6)

    def undone(since: int | None, answered_since: int) -> list[str]:
        return [call.id for call in store.calls.list_undone("run-1", since=since, answered_since=answered_since)]

    assert undone(AT + 6, AT) == ["probed", "answered", "again"]
    assert undone(None, AT) == undone(AT + 7, AT + 6) == ["answered", "again"]
    assert undone(AT + 7, AT + 7) == []
    _prepared(store, claimed(store), "more", MAIL, original="again")
    assert undone(None, AT) == ["answered"]


def test_what_failed_before_the_agents_eyes_is_not_forced_on_it(store: Store) -> None:
    lease = begun(store)
    _prepared(store, lease, "a", SENDS)
    store.ledger.settle(lease, Settlement("a", "doubt", AT + 5, exit_code=22))
    store.ledger.settle(lease, _did_not("a", ReasonCode.SEND_AGAIN))
    assert store.calls.list_forced("run-1") == []


@pytest.mark.parametrize(
    ("change", "forced"),
    [("abandon", ["second"]), ("doubt", []), ("deny", ["first"])],
    ids=["cut off, too", "cut off too often", "held back by the agent"],
)
def test_one_that_was_cut_off_in_its_place_counts_in_its_stead(store: Store, change: str, forced: list[str]) -> None:
    lease = begun(store)
    _prepared(store, lease, "first", key="k")
    _cut_off(store, lease, "first")
    _prepared(store, lease, "second", key="k", original="first")
    _cut_off(store, lease, "second", change)
    assert [call.id for call in store.calls.list_forced("run-1")] == forced


def test_a_person_may_say_that_nothing_waits_for_a_call_that_was_cut_off(store: Store) -> None:
    lease = begun(store)
    for call_id in ("a", "b"):
        _prepared(store, lease, call_id)
        _cut_off(store, lease, call_id)
    _wait(store, lease, WaitReason.HUMAN)
    for verdict in ("happened", "did-not", "retry", "allow", "deny"):
        with pytest.raises(Refused, match="has to be made again: answer skip"):
            store.approvals.answer("run-1", "a", verdict, AT + 8)
    call, run = store.approvals.answer("run-1", "a", "skip", AT + 9)
    assert (call.state, call.answer, run.status.state) == (CallState.ABANDONED, "skip", RunState.WAITING)
    assert call == store.calls.get("run-1", "a")
    assert [one.id for one in store.calls.list_forced("run-1")] == ["b"]
    assert store.approvals.answer("run-1", "b", "skip", AT + 9)[1].status.state is RunState.QUEUED
    with pytest.raises(Refused, match="there is nothing to answer"):
        store.approvals.answer("run-1", "b", "skip", AT + 9)
    told = [event for event in store.records.list_events("run-1") if event.kind == "call.answered"]
    assert [event.actor for event in told] == ["person", "person"]


def test_an_effect_to_be_sent_again_that_a_person_does_not_want_is_denied(store: Store) -> None:
    lease = begun(store)
    _prepared(store, lease, "a", SENDS, key="k")
    _cut_off(store, lease, "a", "doubt")
    store.ledger.settle(lease, _did_not("a", ReasonCode.SEND_AGAIN))
    _wait(store, lease, WaitReason.HUMAN)
    assert store.approvals.answer("run-1", "a", "skip", AT + 9)[0].state is CallState.VOID
    again = store.ledger.admit(claimed(store), intent("again", SENDS, key="k"), decide_call, (2, 4), AT + 10)[1]
    assert (again.decision, again.original) == (Decision.DENY, "a")


def test_a_part_of_a_task_is_made_again_with_it_and_a_skipped_call_never(store: Store) -> None:
    lease = begun(store)
    _prepared(store, lease, "task", TASK)
    part = _prepared(store, lease, "part", READ, parent_id="task")
    assert (part.parent_id, part == store.calls.get("run-1", "part")) == ("task", True)
    _cut_off(store, lease, "part")
    _prepared(store, lease, "skipped", READ)
    _cut_off(store, lease, "skipped", "doubt")
    _cut_off(store, lease, "task")
    _wait(store, lease, WaitReason.IN_DOUBT)
    store.approvals.answer("run-1", "skipped", "skip", AT + 9)
    assert [call.id for call in store.calls.list_forced("run-1")] == ["task"]


def test_a_probe_s_later_word_does_not_hide_that_a_call_was_cut_off(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    assert store.calls.count_cut_off("run-1", "k") == 0
    _prepared(store, lease, "a", READ, key="k")
    _cut_off(store, lease, "a")
    _prepared(store, lease, "b", SENDS, key="k")
    clock.now += LEASE_MS
    lease = claimed(store, name="worker-2")
    _cut_off(store, lease, "b", "doubt")
    store.ledger.settle(lease, Settlement("b", "doubt", AT + 6, "looked", origin="recovery", reason="nobody knows"))
    store.ledger.settle(lease, Settlement("b", "did_not", AT + 7, origin="probe", reason="it says so"))
    _prepared(store, lease, "c", READ, key="k")
    store.ledger.settle(lease, Settlement("c", "abandon", AT + 8))  # by the agent itself
    _prepared(store, lease, "d", READ, key="other")
    _cut_off(store, lease, "d")
    assert store.calls.count_cut_off("run-1", "k") == 2
    assert store.verify.check_all() == []


# waiting for a person


@pytest.mark.parametrize(
    ("rule", "strict", "state"),
    [
        (MAIL, False, RunState.WAITING),
        (READ, False, RunState.WAITING),  # cut off too often
        (UNKNOWN, False, RunState.QUEUED),
        (UNKNOWN, True, RunState.WAITING),
    ],
)
def test_a_run_wakes_when_nothing_is_open_that_a_person_has_to_judge(
    store: Store, rule: Rule, strict: bool, state: RunState
) -> None:
    made(store, spec={"strict": strict})
    lease = claimed(store)
    for call_id, its in (("open", rule), ("answered", MAIL)):
        _prepared(store, lease, call_id, its)
        _cut_off(store, lease, call_id, "doubt")
    _wait(store, lease, WaitReason.IN_DOUBT)
    assert store.approvals.answer("run-1", "answered", "did-not", AT + 9)[1].status.state is state
    if state is RunState.WAITING:
        assert store.approvals.answer("run-1", "open", "did-not", AT + 9)[1].status.state is RunState.QUEUED


def test_what_was_asked_stays_asked_until_it_is_answered(store: Store) -> None:
    lease = begun(store)
    first, second = _asked(store, lease, "a", "k1", AT), _asked(store, lease, "b", "k2", AT + 1)
    assert store.calls.list_asked("run-1") == [first, second]
    _wait(store, lease, WaitReason.APPROVAL)
    store.approvals.answer("run-1", "a", "deny", AT + 9)
    assert [call.id for call in store.calls.list_asked("run-1")] == ["b"]


@pytest.mark.parametrize(("verdict", "decision"), [("allow", Decision.ALLOW), ("deny", Decision.DENY)])
def test_silence_is_an_answer_after_its_time(store: Store, verdict: str, decision: Decision) -> None:
    lease = begun(store)
    _asked(store, lease, "a", "k1", AT)
    _asked(store, lease, "again", "k1", AT + 50)
    _asked(store, lease, "young", "k2", AT + 50)
    assert store.approvals.expire(lease, AT + 60, verdict, AT) == []
    answered = store.approvals.expire(lease, AT + 60, verdict, AT + 1)
    assert [(call.id, call.answer, call.finished_at) for call in answered] == [
        ("a", verdict, AT + 60),
        ("again", verdict, AT + 60),
    ]
    assert answered[0] == store.calls.get("run-1", "a")
    event = store.records.list_events("run-1")[-1]
    assert (event.kind, event.actor, '"by":"timeout"' in event.data) == ("call.answered", "timeout", True)
    assert [call.id for call in store.calls.list_asked("run-1")] == ["young"]
    admission = store.ledger.admit(lease, intent("next", ASKED, key="k1", target=""), decide_call, (1, 2), AT + 70)[1]
    assert admission.decision is decision
    assert store.verify.check_all() == []
    assert store.verify.verify_run("run-1").problems == ()


TO_ADA, TO_BOB = {"target": "mail:ada"}, {"target": "mail:bob"}


def _answered_always(store: Store, rule: Rule = ASKED, **place: str) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent("a", rule, key="k1", **place), decide_call, (1, 2), AT)
    _wait(store, lease, WaitReason.APPROVAL)
    store.approvals.answer("run-1", "a", "always", AT + 9)


@pytest.mark.parametrize("rule", [ASKED, READ._replace(decision=Decision.ASK)])
def test_always_is_for_later_calls_of_the_rule_with_the_target(store: Store, rule: Rule) -> None:
    _answered_always(store, rule, **TO_ADA)
    lease = claimed(store)
    other = rule._replace(name="other")
    wanted = {
        "the same": (rule, "k1", TO_ADA),
        "other content": (rule, "k2", TO_ADA),
        "another target": (rule, "k3", TO_BOB),
        "another rule": (other, "k4", TO_ADA),
        "no target": (rule, "k5", {"target": ""}),
    }
    decided = {
        name: store.ledger.admit(lease, intent(name, its, key=key, **place), decide_call, (2, 4), AT + 10)[1]
        for name, (its, key, place) in wanted.items()
    }
    asked = ("another target", "another rule", "no target")
    assert {name: one.decision for name, one in decided.items()} == {
        name: Decision.ASK if name in asked else Decision.ALLOW for name in wanted
    }
    assert decided["other content"].original == "a"
    assert (store.verify.check_all(), store.verify.verify_run("run-1").problems) == ([], ())


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("mails", ""),
        ("mails", "mail:"),
        ("mails", "mail:null"),
        ("mails", "git:null/main"),
        ("mails", "mail:[redacted]"),
        ("mails + other commands", "mail:ada"),
    ],
)
def test_always_is_for_the_call_alone_if_the_target_does_not_name_one_thing(
    store: Store, name: str, target: str
) -> None:
    rule = ASKED._replace(name=name)
    _answered_always(store, rule, target=target)
    lease = claimed(store)
    for key, decision in (("k1", Decision.ALLOW), ("k2", Decision.ASK)):
        wanted = intent(key, rule, key=key, target=target)
        assert store.ledger.admit(lease, wanted, decide_call, (2, 4), AT + 10)[1].decision is decision


def test_always_answers_the_other_open_calls_of_the_rule_and_target(store: Store) -> None:
    lease = begun(store)
    for key, place in (("k1", TO_ADA), ("k2", TO_ADA), ("k3", TO_BOB)):
        store.ledger.admit(lease, intent(key, ASKED, key=key, **place), decide_call, (1, 2), AT)
    _wait(store, lease, WaitReason.APPROVAL)
    assert store.approvals.answer("run-1", "k1", "always", AT + 9)[1].status.state is RunState.WAITING
    assert [call.id for call in store.calls.list_asked("run-1")] == ["k3"]
    assert store.approvals.answer("run-1", "k3", "deny", AT + 9)[1].status.state is RunState.QUEUED
    assert [call.answer for call in store.calls.list_all("run-1")] == ["always", "always", "deny"]
    assert (store.verify.check_all(), store.verify.verify_run("run-1").problems) == ([], ())


def test_a_timeout_speaks_only_under_the_newest_lease_and_in_words_that_fit(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    _asked(store, lease, "a", "k1", AT)
    with pytest.raises(Refused, match="'happened' is not an answer to a call that needs approval; use allow or deny"):
        store.approvals.expire(lease, AT + 9, "happened", AT + 9)
    clock.now += LEASE_MS
    claimed(store, name="worker-2")
    with pytest.raises(Fenced):
        store.approvals.expire(lease, AT + 9, "allow", AT + 9)
    assert [call.id for call in store.calls.list_asked("run-1")] == ["a"]


# the end of a run that waits


def test_a_cancel_leaves_no_call_under_way_and_tells_what_stays_in_doubt(store: Store) -> None:
    lease = begun(store)
    for call_id, rule in (("mail", MAIL), ("mail 2", MAIL), ("unknown", UNKNOWN), ("read", READ), ("poke", POKE)):
        _prepared(store, lease, call_id, rule)
    _wait(store, lease, WaitReason.PAUSED)
    run = store.runs.request_cancel("run-1", AT + 20, "notice-1")
    assert run.status.state is RunState.CANCELLED
    states = {call.id: (call.state, call.finished_at) for call in store.calls.list_all("run-1")}
    doubt, given_up = (CallState.IN_DOUBT, None), (CallState.ABANDONED, AT + 20)
    assert states == {"mail": doubt, "mail 2": doubt, "unknown": doubt, "read": given_up, "poke": given_up}
    (notice,) = store.records.list_notices("run-1")
    assert notice.body == "2 effects stay in doubt: jackline receipts run-1"
    assert (store.verify.check_all(), store.verify.verify_run("run-1").problems) == ([], ())
    with pytest.raises(Refused, match="run-1 was cancelled: its calls can no longer be answered"):
        store.approvals.answer("run-1", "mail", "happened", AT + 30)


def test_a_cancel_without_open_calls_tells_of_none(store: Store) -> None:
    lease = begun(store)
    _wait(store, lease, WaitReason.PAUSED)
    store.runs.request_cancel("run-1", AT + 20, "notice-1")
    assert store.records.list_notices("run-1")[0].body == ""


# the tally


def test_the_tally_counts_how_the_calls_came_out(store: Store) -> None:
    lease = begun(store)
    assert store.calls.tally("run-1") == store.calls.tally("nobody") == Tally()
    store.ledger.admit(lease, intent("mail"), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("mail", "succeed", AT))
    store.ledger.admit(lease, intent("stored"), decide_call, (1, 1), AT)
    _prepared(store, lease, "read")
    _cut_off(store, lease, "read")
    _prepared(store, lease, "read again", original="read")
    store.ledger.settle(lease, Settlement("read again", "fail", AT))
    store.ledger.admit(lease, intent("no", MAIL._replace(decision=Decision.DENY), key="x"), decide_call, (1, 1), AT)
    _asked(store, lease, "asked", "y", AT)
    _prepared(store, lease, "approved", original="asked")
    _prepared(store, lease, "doubt", MAIL, target="")
    _cut_off(store, lease, "doubt", "doubt")
    spent = RunStatus(state=RunState.RUNNING).spent.plus(steps=3)
    store.leases.write_change(lease, RunChange(AT, status=RunStatus(state=RunState.FAILED, spent=spent)))
    assert store.calls.tally("run-1") == Tally(
        calls=8,
        tools=5,
        effects=2,
        failed=1,
        replayed=2,
        abandoned=1,
        denied=1,
        asked=1,
        in_doubt=1,
        receipts=1,
        steps=3,
    )
