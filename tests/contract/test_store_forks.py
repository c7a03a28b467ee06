"""Forks: what a child knows of its ancestors' effects, up to the fork and after it; the same on every backend."""

from __future__ import annotations

import pytest

from jackline.domain.call_gate import Admission, History, Intent, decide_call
from jackline.domain.records import Lease
from jackline.domain.states import Decision
from jackline.errors import NotFound
from jackline.store.models import Settlement
from jackline.store.store import Store
from tests.support.stores import AT, begun, claimed, history_of, intent, made


def _effect(store: Store, lease: Lease, call_id: str, step: int, key: str, change: str = "succeed") -> None:
    def let_it(_: Intent, __: History) -> Admission:
        return Admission(Decision.ALLOW)

    store.ledger.admit(lease, intent(call_id, key=key, target=f"mail:{key}"), let_it, (1, step), AT)
    if change:
        store.ledger.settle(lease, Settlement(call_id, change, AT + 1, f"did {call_id}"))


def _asking(key: str, target: str = "") -> Intent:
    return intent("asks", key=key, target=target or f"mail:{key}", run_id="child")


def test_a_fork_knows_where_it_left_its_parent(store: Store) -> None:
    parent = made(store)
    child = made(store, "child", parent="run-1", forked_at=4)
    assert (child.parent, child.forked_at, child.lineage) == ("run-1", 4, parent.lineage)
    assert store.runs.get("child") == child
    assert made(store, "grandchild", parent="child", forked_at=2).lineage == parent.lineage
    assert store.runs.list_ancestors("grandchild") == [("child", 2), ("run-1", 4)]
    assert store.runs.list_ancestors("run-1") == []
    assert made(store, "alone", forked_at=3).forked_at is None
    assert '"forked_at":4' in store.records.list_events("child")[0].data


def test_a_fork_needs_a_parent_that_is_there(store: Store) -> None:
    with pytest.raises(NotFound, match="no run matches 'ghost'"):
        made(store, "child", parent="ghost")
    assert store.runs.get("child") is None


def test_effects_up_to_the_fork_are_done_and_later_ones_are_asked(store: Store) -> None:
    lease = begun(store)
    _effect(store, lease, "before", 4, "k1")
    _effect(store, lease, "after", 5, "k2")
    made(store, "child", parent="run-1", forked_at=4)
    child = claimed(store, "child")
    receipts = {one.call_id: one for one in store.calls.list_receipts("run-1")}
    known = history_of(store, child, _asking("k1"))
    assert (known.receipt, known.after_fork) == (receipts["before"], None)
    later = history_of(store, child, _asking("k2"))
    assert (later.receipt, later.after_fork) == (None, receipts["after"])
    decisions = [
        decide_call(_asking(key), history_of(store, child, _asking(key))).decision for key in ("k1", "k2", "k3")
    ]
    assert decisions == [Decision.STORED, Decision.ASK, Decision.ALLOW]


def test_each_ancestor_counts_up_to_its_own_fork(store: Store) -> None:
    grandparent = begun(store, "grandparent")
    _effect(store, grandparent, "g2", 2, "k1")
    _effect(store, grandparent, "g9", 9, "k2")
    made(store, "parent", parent="grandparent", forked_at=5)
    parent = claimed(store, "parent")
    _effect(store, parent, "p7", 7, "k3")
    _effect(store, parent, "p1", 1, "k4")
    made(store, "child", parent="parent", forked_at=6)
    child = claimed(store, "child")
    known = {key: history_of(store, child, _asking(key)) for key in ("k1", "k2", "k3", "k4")}
    assert {key: one.receipt.call_id for key, one in known.items() if one.receipt} == {"k1": "g2", "k4": "p1"}
    assert {key: one.after_fork.call_id for key, one in known.items() if one.after_fork} == {"k2": "g9", "k3": "p7"}


def test_a_person_s_word_in_the_child_counts_more_than_what_came_after_the_fork(store: Store) -> None:
    lease = begun(store)
    _effect(store, lease, "after", 5, "k1")
    made(store, "child", parent="run-1", forked_at=4)
    child = claimed(store, "child")
    wanted = _asking("k1")
    _, admission, receipt = store.ledger.admit(child, wanted, decide_call, (1, 1), AT)
    assert (admission.decision, admission.original, receipt) == (Decision.ASK, "after", None)
    store.approvals.expire(child, AT + 9, "allow", AT + 1)
    again = store.ledger.admit(child, wanted._replace(call_id="again"), decide_call, (1, 1), AT + 10)[1]
    assert (again.decision, again.original) == (Decision.ALLOW, "asks")


@pytest.mark.parametrize("change", ["doubt", ""])
def test_what_nobody_knows_of_in_the_parent_is_asked_in_the_child(store: Store, change: str) -> None:
    lease = begun(store)
    _effect(store, lease, "open", 2, "k1", change)
    made(store, "child", parent="run-1", forked_at=4)
    history = history_of(store, claimed(store, "child"), _asking("k1", "mail:other"))
    assert history.unsettled == store.calls.get("run-1", "open")
    assert decide_call(_asking("k1"), history).decision is Decision.ASK


def test_a_target_that_an_ancestor_touched_with_other_content_is_asked(store: Store) -> None:
    grandparent = begun(store, "grandparent")
    _effect(store, grandparent, "done", 9, "bob")
    made(store, "parent", parent="grandparent", forked_at=1)
    parent = claimed(store, "parent")
    _effect(store, parent, "failed", 1, "eve", "fail")
    made(store, "child", parent="parent", forked_at=1)
    child = claimed(store, "child")
    known = history_of(store, child, _asking("other", "mail:bob"))
    assert [call.id for call in known.same_target] == ["done"]
    assert decide_call(_asking("other", "mail:bob"), known).decision is Decision.ASK
    assert history_of(store, child, _asking("other", "mail:eve")).same_target == ()


def test_what_an_earlier_session_of_the_same_attempt_did_to_a_target_counts(store: Store) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent("first", key="k1"), decide_call, (1, 2), AT)
    store.ledger.settle(lease, Settlement("first", "succeed", AT + 1))
    fresh = intent("second", key="k2", since_turn=2)
    assert [call.id for call in history_of(store, lease, fresh).same_target] == ["first"]
    assert history_of(store, lease, fresh._replace(since_turn=1)).same_target == ()
    assert decide_call(fresh, history_of(store, lease, fresh)).decision is Decision.ASK
