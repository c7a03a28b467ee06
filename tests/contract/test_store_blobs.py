"""Large texts are stored once per run, read back whole and covered by the chain; the same on every backend."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.records import Call, Lease, Receipt
from jackline.domain.states import CallClass, Decision, Replay
from jackline.policy.rules import Rule
from jackline.store.blobs import LARGE, MOST, SHOWN
from jackline.store.models import Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, READ, FakeClock, begun, by_hand, claimed, intent, made

BIG = "0123456789abcdé\n" * 2_000  # 34 000 bytes
TASK = Rule("tasks", "task", CallClass.LOCAL, Replay.RELAUNCH)


def _made(store: Store, lease: Lease, call_id: str, given: str = "{}", output: str = "", rule: Rule = READ) -> Call:
    store.ledger.admit(lease, intent(call_id, rule, input=given), decide_call, (1, 1), AT)
    return store.ledger.settle(lease, Settlement(call_id, "succeed", AT + 1, output))


def _contents(store: Store) -> int:
    return int(by_hand(store, "SELECT COUNT(*) FROM contents")[0][0])


@pytest.mark.parametrize(("bytes_", "kept"), [(LARGE, 0), (LARGE + 1, 1)])
def test_a_text_is_large_above_sixteen_kibibytes(store: Store, bytes_: int, kept: int) -> None:
    lease = begun(store)
    call = _made(store, lease, "a", "x" * bytes_)
    assert (call.input_ref is not None, _contents(store)) == (bool(kept), kept)
    assert len(call.input) == (SHOWN if kept else bytes_)
    assert store.blobs.load_call(call).input == "x" * bytes_


def test_bytes_count_and_not_characters(store: Store) -> None:
    call = _made(store, begun(store), "a", output="é" * (LARGE // 2 + 1))
    assert (call.output_ref is not None, call.output) == (True, "é" * (SHOWN // 2))


def test_a_large_text_is_kept_once_a_run_and_comes_back_whole(store: Store) -> None:
    lease = begun(store)
    ref = hashlib.sha256(BIG.encode()).hexdigest()
    for call_id in ("a", "b"):
        call = _made(store, lease, call_id, BIG, BIG)
        assert call == store.calls.get("run-1", call_id)
        assert (call.input_ref, call.output_ref) == (ref, ref)
        assert (store.blobs.load_call(call).input, store.blobs.load_call(call).output) == (BIG, BIG)
    assert (_contents(store), store.blobs.list_digests("run-1")) == (1, [ref])
    assert store.blobs.get("run-1", ref) == BIG
    assert store.blobs.get("run-2", ref) is store.blobs.get("run-1", "nothing") is None
    assert f'"input":"{ref}"' in store.records.list_events("run-1")[-2].data
    assert store.verify.check_all() == []


def test_an_enormous_text_loses_its_middle_and_says_so(store: Store) -> None:
    lease = begun(store)
    call = _made(store, lease, "a", "é" * (MOST // 2 + 500), "first " + "y" * MOST + " last")
    whole = store.blobs.load_call(call)
    assert len(whole.input.encode()) <= MOST
    assert " of 8389608 bytes were left out here]\n" in whole.input
    assert whole.output.startswith("first yyy")
    assert whole.output.endswith("yyy last")
    assert hashlib.sha256(whole.output.encode()).hexdigest() == call.output_ref
    assert store.verify.check_all() == []


def test_a_stored_result_is_given_back_whole_and_stands_once(store: Store) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("call-1", "succeed", AT, BIG))
    (kept,) = store.calls.list_receipts("run-1")
    assert (BIG.startswith(kept.output), len(kept.output.encode()) <= SHOWN) == (True, True)
    _, admission, receipt = store.ledger.admit(lease, intent("call-2"), decide_call, (1, 1), AT)
    assert (admission.decision, receipt) == (Decision.STORED, kept._replace(output=BIG))
    made(store, "child", parent="run-1")
    inherited = store.ledger.admit(claimed(store, "child"), intent("c"), decide_call, (1, 1), AT)[2]
    assert inherited == receipt
    assert _contents(store) == 1


def test_a_lost_content_is_not_passed_off_as_whole(store: Store) -> None:
    lease = begun(store)
    call = _made(store, lease, "a", BIG)
    suffix = "" if store.admin.get_status().backend == "sqlite" else " ON contents"
    for name in ("contents_never_change", "contents_never_leave"):
        by_hand(store, f"DROP TRIGGER IF EXISTS {name}{suffix}")
    by_hand(store, "DELETE FROM contents")
    assert "is missing from the database" in store.blobs.load_call(call).input
    assert store.verify.check_all() == [f"run run-1: content {call.input_ref} of call a is missing"]


def test_a_finished_task_gives_its_output_again_after_a_crash(store: Store, clock: FakeClock) -> None:
    lease = begun(store)
    _made(store, lease, "first", output=BIG, rule=TASK)
    clock.now += LEASE_MS
    second = claimed(store, name="worker-2")
    call, admission, receipt = store.ledger.admit(second, intent("again", TASK), decide_call, (2, 3), AT + 9)
    assert (admission.decision, call.original) == (Decision.STORED, "first")
    assert receipt == Receipt("first", "run-1", "key-1", "", "tasks", BIG, "", "agent", AT)
    assert [one.call_id for one in store.calls.list_receipts("run-1")] == []


def test_a_judgement_without_words_leaves_what_the_agent_said(store: Store) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(external='{"git.commit":"abc"}'), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("call-1", "doubt", AT + 1, BIG, 7, duration_ms=40))
    call = store.ledger.settle(lease, Settlement("call-1", "happened", AT + 2, origin="probe", external='{"url":"u"}'))
    assert (store.blobs.load_call(call).output, call.exit_code, call.duration_ms) == (BIG, 7, 40)
    assert call.external == '{"url":"u"}'
    assert call == store.calls.get("run-1", "call-1")
    assert store.verify.check_all() == []


def test_a_small_text_costs_no_statement_more(store: Store) -> None:
    lease = begun(store)
    driver: Any = store.driver
    ran: list[str] = []
    original = type(driver).run

    def count(self: object, name: str, values: object) -> int:
        ran.append(name)
        result: int = original(self, name, values)
        return result

    statements = type(driver)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "run", count)
        _made(store, lease, "a", '{"path":"x"}', "small")
        assert ran == ["move_head", "add_event", "add_call", "move_head", "add_event", "settle_call"]
