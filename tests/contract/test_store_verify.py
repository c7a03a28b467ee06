"""Verify: whoever alters, drops, inserts or reorders anything of a run is found out; the same on every backend."""

from __future__ import annotations

import json

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Notice, RunStatus
from jackline.domain.states import RunState
from jackline.errors import NotFound
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, READ, begun, by_hand, claimed, intent, made

BIG = "a large text\n" * 3_000
_TRIGGERS = {
    "events": ("events_never_change", "events_never_leave"),
    "receipts": ("receipts_never_change", "receipts_never_leave"),
    "contents": ("contents_never_change", "contents_never_leave"),
}


def _worked(store: Store, run_id: str = "run-1") -> None:
    """Events 1 created, 2 claimed, 3 and 4 an effect, 5 and 6 a large read, 7 the end."""
    lease = begun(store, run_id)
    store.ledger.admit(lease, intent("effect"), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("effect", "succeed", AT + 1, "sent", 0, "message-1", duration_ms=5))
    store.ledger.admit(lease, intent("read", READ, key="k2", input=BIG), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("read", "succeed", AT + 2, "out"))
    notice = Notice("notice-1", run_id, "run.failed", "it failed", "", "", AT + 3)
    store.leases.write_change(
        lease, RunChange(AT + 3, (Fact("run.failed"),), RunStatus(state=RunState.FAILED), notice=notice)
    )


def _tamper(store: Store, *statements: str) -> None:
    for table, names in _TRIGGERS.items():
        suffix = "" if store.admin.get_status().backend == "sqlite" else f" ON {table}"
        for name in names:
            by_hand(store, f"DROP TRIGGER IF EXISTS {name}{suffix}")
    for sql in statements:
        by_hand(store, sql)


def test_a_run_that_nobody_touched_is_whole(store: Store) -> None:
    _worked(store)
    run = store.runs.get("run-1")
    assert run is not None
    found = store.verify.verify_run("run-1")
    assert found.problems == ()
    assert (found.events, found.calls, found.receipts, found.contents, found.heads) == (7, 2, 1, 1, 1)
    assert found.chain_head == run.chain_head
    made(store, "fresh")
    assert store.verify.verify_run("fresh").problems == ()


def test_a_run_that_is_not_there_cannot_be_verified(store: Store) -> None:
    with pytest.raises(NotFound):
        store.verify.verify_run("nothing")


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE events SET data = '{}' WHERE seq = 3", "broken at event 3"),
        ("UPDATE events SET at = at + 1 WHERE seq = 6", "broken at event 6"),
        ("UPDATE events SET kind = 'run.succeeded' WHERE seq = 7", "broken at event 7"),
        ("UPDATE events SET actor = 'me' WHERE seq = 2", "broken at event 2"),
        ("UPDATE events SET hash = 'x' WHERE seq = 1", "broken at event 1"),
        ("DELETE FROM events WHERE seq = 4", "broken at event 4"),
        ("DELETE FROM events WHERE seq = 7", "its chain ends at event 6, its row says 7"),
        ("INSERT INTO events VALUES ('run-1', 8, 1, 'k', 'a', '{}', 'h')", "broken at event 8"),
        ("INSERT INTO events VALUES ('run-1', 0, 1, 'k', 'a', '{}', 'h')", "event 0 precedes the first"),
        ("UPDATE runs SET chain_head = 'x'", "its chain ends at event 7 with another hash than its row says"),
        ("UPDATE runs SET state = 'cancelled'", "its row was altered after it had been written"),
        ('UPDATE specs SET spec = \'{"prompt": "x", "workspace": "/"}\'', "its spec was altered"),
        (
            "UPDATE notices SET chain_head = 'gone'",
            "notice notice-1 announced the head gone, which is not on the chain",
        ),
        ("UPDATE calls SET target = 'mail:eve' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET key = 'x' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET call_class = 'read' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET state = 'void' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET exit_code = 1 WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET duration_ms = 1 WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET external = '{}' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET answer = 'happened' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET finished_at = 1 WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET reason = 'because' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET reason_code = 'gave_up' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET parent_id = 'read' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET output = 'never' WHERE id = 'effect'", "call effect was altered"),
        ("UPDATE calls SET input = 'short' WHERE id = 'read'", "call read was altered"),
        ("UPDATE calls SET input_ref = NULL WHERE id = 'read'", "call read was altered"),
        ("DELETE FROM calls WHERE id = 'read'", "call read is missing from the ledger"),
        ("DELETE FROM receipts", "the effect of call effect is done and has no receipt"),
        ("UPDATE receipts SET external_id = 'message-2'", "the receipt of call effect was altered"),
        ("UPDATE receipts SET origin = 'person'", "the receipt of call effect was altered"),
        ("UPDATE receipts SET output = 'other'", "the receipt of call effect was altered"),
        ("UPDATE contents SET content = 'other'", "was altered after it had been written"),
        ("DELETE FROM contents", "of call read is missing"),
    ],
)
def test_every_change_is_found(store: Store, tampering: str, said: str) -> None:
    _worked(store)
    _tamper(store, tampering)
    problems = store.verify.verify_run("run-1").problems
    assert problems, tampering
    assert said in problems[0]


def test_two_events_that_changed_places_are_found(store: Store) -> None:
    _worked(store)
    swap = [f"UPDATE events SET seq = {after} WHERE seq = {before}" for before, after in ((4, 99), (5, 4), (99, 5))]
    _tamper(store, *swap)
    assert store.verify.verify_run("run-1").problems == ("run run-1: its chain is broken at event 4",)


def test_a_forged_receipt_is_found(store: Store) -> None:
    _worked(store)
    receipt = "('read', 'run-1', 'k2', '', 'reads', 'out', '', 'agent', 1)"
    _tamper(store, f"INSERT INTO receipts VALUES {receipt}")
    assert store.verify.verify_run("run-1").problems == ("run run-1: call read has a receipt, and no event records it",)


def _rewritten(store: Store) -> list[Event]:
    """The whole chain computed anew over another story, as only somebody who knows jackline could."""
    story: list[Event] = []
    for event in store.records.list_events("run-1"):
        data = json.loads(event.data)
        told = {"note": "improved"} if event.kind == "run.failed" else data
        head = story[-1].hash if story else ""
        story.append(place(Fact(event.kind, told), "run-1", event.seq, event.at, event.actor, head))
    return story


def test_a_rewritten_chain_is_found_by_a_head_that_left_the_machine(store: Store) -> None:
    _worked(store)
    kept = store.records.list_events("run-1")[-1].hash
    last = _rewritten(store)[-1]
    _tamper(
        store,
        f"UPDATE events SET data = '{last.data}', hash = '{last.hash}' WHERE seq = 7",
        f"UPDATE runs SET chain_head = '{last.hash}'",
    )
    assert "announced the head" in store.verify.verify_run("run-1").problems[0]
    _tamper(store, f"UPDATE notices SET chain_head = '{last.hash}'")
    assert store.verify.verify_run("run-1").problems == ()
    found = store.verify.verify_run("run-1", kept_head=kept)
    if store.driver.backend == "postgres":  # whose server may have died and lost it, unnoticed by the run
        assert (found.problems, found.missing_head) == ((), kept)
    else:
        assert found.problems == (f"run run-1: the head {kept} that was kept is not on the chain",)


def test_a_kept_head_may_be_older_than_the_run_is_now(store: Store) -> None:
    _worked(store)
    head = store.records.list_events("run-1")[3].hash
    assert store.verify.verify_run("run-1", kept_head=head).problems == ()


def test_the_archive_is_part_of_the_chain(store: Store) -> None:
    _worked(store)
    archived = store.records.list_events("run-1")
    store.admin.drop_archived_events("run-1", archived[-1].hash, AT + 9)
    lost = "run run-1: its first 7 events were archived and are not here"
    assert store.verify.verify_run("run-1").problems == (lost,)
    assert store.verify.verify_run("run-1", archived).problems == ()
    assert store.verify.verify_run("run-1", archived[1:]).problems == ("run run-1: its chain is broken at event 1",)
    short = ("run run-1: its archive ends at event 6, its row says 7",)
    assert store.verify.verify_run("run-1", archived[:-1]).problems == short
    changed = [*archived[:3], archived[3]._replace(data="{}"), *archived[4:]]
    assert store.verify.verify_run("run-1", changed).problems == ("run run-1: its chain is broken at event 4",)
    lease = claimed(store)
    store.leases.write_change(lease, RunChange(AT + 10, (Fact("run.failed"),), RunStatus(state=RunState.FAILED)))
    assert store.verify.verify_run("run-1", archived).problems == ()
    assert (store.verify.verify_run("run-1", archived).events, store.verify.check_all()) == (9, [])
