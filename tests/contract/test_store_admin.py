"""Status, checks, archives, append-only tables, and text that databases reject."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact, broken_at
from jackline.domain.records import Check, Notice, RunStatus, SessionUse, Turn
from jackline.domain.states import RunState
from jackline.errors import Refused, StoreError
from jackline.store.models import RunChange, RunQuery, Settlement
from jackline.store.open import database_status, open_store
from jackline.store.store import Store
from tests.support.stores import AT, begun, by_hand, claimed, drop_triggers, intent, made

DIRTY = "a\x00b\ud800c é 🙂"
CLEAN = "a\ufffdb\ufffdc é 🙂"


def _worked(store: Store, run_id: str = "run-1") -> None:
    """A run with events, an effect and its receipt."""
    lease = begun(store, run_id)
    store.ledger.admit(lease, intent(f"{run_id}-call"), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement(f"{run_id}-call", "succeed", AT + 1, "sent", 0, "message-1"))
    store.leases.write_change(lease, RunChange(AT + 2, (Fact("run.failed"),), RunStatus(state=RunState.FAILED)))


def test_status_tells_schema_size_and_counts(store: Store, database: str) -> None:
    _worked(store)
    status = store.admin.get_status()
    assert (status.schema, status.pending) == (status.known_schema, ())
    counts = {"runs": 1, "calls": 1, "receipts": 1, "contents": 0, "events": 5, "notices": 0}
    assert status.counts == {**counts, "work_items": 0, "cases": 0}
    assert status.size is not None
    assert status.size > 0
    assert status == database_status(database)


def test_the_secret_is_one_for_the_instance(opened: Callable[..., Store]) -> None:
    first, second = opened(), opened()
    assert len(first.secret) == 32
    assert first.secret == second.secret


def test_a_store_in_order_has_nothing_to_report(store: Store) -> None:
    for number in range(3):
        _worked(store, f"run-{number}")
    made(store, "run-9")
    begun(store, "run-8")
    assert store.verify.check_all() == []


def test_the_chain_covers_every_event(store: Store) -> None:
    _worked(store)
    run = store.runs.get("run-1")
    events = store.records.list_events("run-1")
    assert run is not None
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert (broken_at(events), events[-1].hash) == (None, run.chain_head)
    assert store.records.list_events("run-1", after=3, limit=1) == events[3:4]
    assert store.records.list_events("run-1", limit=0) == store.records.list_events("nobody") == []


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE events SET data = '{}' WHERE seq = 3", "its chain is broken at event 3"),
        ("UPDATE events SET actor = 'me' WHERE seq = 5", "its chain is broken at event 5"),
        ("DELETE FROM events WHERE seq = 2", "its chain is broken at event 2"),
        ("DELETE FROM events WHERE seq = 5", "its chain ends at event 4, its row says 5"),
        ("UPDATE runs SET chain_head = 'x'", "its chain ends at event 5 with another hash than its row says"),
        ("UPDATE calls SET output = 'never sent'", "call run-1-call was altered after it had been written"),
        ("UPDATE calls SET input = '{}'", "call run-1-call was altered after it had been written"),
        ("DELETE FROM receipts", "the effect of call run-1-call is done and has no receipt"),
        ("UPDATE runs SET owner = 'ghost', lease_until = 1", "is failed, and its lease says otherwise"),
        ("UPDATE runs SET finished_at = NULL", "is failed, and its time of ending says otherwise"),
        ("UPDATE attempts SET ended_at = NULL", "1 attempts have not ended"),
        (
            "INSERT INTO events VALUES ('ghost', 1, 1, 'kind', 'actor', '{}', 'hash')",
            "there are events of a run ghost that does not exist",
        ),
        ("UPDATE schema_migrations SET checksum = 'x' WHERE version = 2", "migration 0002_ledger was changed"),
    ],
)
def test_tampering_is_found(store: Store, tampering: str, said: str) -> None:
    _worked(store)
    drop_triggers(store)
    by_hand(store, tampering)
    found = store.verify.check_all()
    assert said in found[-1]
    assert len(found) == (2 if "finished_at" in tampering else 1)  # its events say that, too


def test_a_call_that_no_event_tells_of_is_found(store: Store) -> None:
    _worked(store)
    columns = ", ".join(name for name in _columns(store, "calls") if name not in {"id", "key", "call_class"})
    sql = f"INSERT INTO calls (id, key, call_class, {columns}) SELECT 'forged', 'k', 'read', {columns} FROM calls"
    by_hand(store, sql)
    assert store.verify.check_all() == ["run run-1: call forged is in the ledger, and no event records it"]


def _columns(store: Store, table: str) -> list[str]:
    connection = store.driver._connection  # type: ignore[attr-defined]
    cursor = connection.execute(f"SELECT * FROM {table} WHERE 1 = 0")
    return [column[0] for column in cursor.description]


@pytest.mark.parametrize("table", ["events", "receipts"])
@pytest.mark.parametrize("sql", ["UPDATE {table} SET at = 1", "DELETE FROM {table}"])
def test_the_database_itself_refuses_to_alter_what_was_written(store: Store, table: str, sql: str) -> None:
    _worked(store)
    with pytest.raises(Exception, match=f"{table} are append-only"):
        by_hand(store, sql.format(table=table))
    assert store.verify.check_all() == []


def test_only_ended_runs_that_have_their_events_are_archived(store: Store) -> None:
    _worked(store, "old")
    begun(store, "still running")
    assert store.admin.list_archivable(AT + 2) == []
    assert store.admin.list_archivable(AT + 3) == ["old"]
    assert store.admin.list_archivable(AT + 3, limit=0) == []


def test_archived_events_leave_and_the_chain_goes_on(store: Store) -> None:
    _worked(store)
    head = store.records.list_events("run-1")[-1].hash
    assert store.admin.drop_archived_events("run-1", head, AT + 9) == 5
    assert store.records.list_events("run-1") == []
    assert store.admin.list_archivable(AT + 99) == []
    assert store.verify.check_all() == []
    lease = claimed(store)
    store.leases.write_change(lease, RunChange(AT + 9, (Fact("run.failed"),), RunStatus(state=RunState.FAILED)))
    assert [event.seq for event in store.records.list_events("run-1")] == [6, 7]
    assert store.verify.check_all() == []
    assert store.admin.list_archivable(AT + 99) == ["run-1"]
    with pytest.raises(Exception, match="events are append-only"):
        by_hand(store, "DELETE FROM events")


def test_a_run_that_moved_on_keeps_its_events(store: Store) -> None:
    _worked(store)
    for head in ("", store.records.list_events("run-1")[2].hash):
        with pytest.raises(Refused, match="has changed since it was archived"):
            store.admin.drop_archived_events("run-1", head, AT)
    claimed(store)
    with pytest.raises(Refused, match="has changed since"):
        store.admin.drop_archived_events("run-1", store.records.list_events("run-1")[-1].hash, AT)


def test_text_that_cannot_be_stored_is_replaced_and_nothing_fails(store: Store) -> None:
    made(store, spec={"prompt": DIRTY, "agent": DIRTY}, repository=f"/x/{DIRTY}", request=DIRTY)
    row = store.runs.list_page(RunQuery(agent=DIRTY))[0]
    assert (row.prompt, row.agent, row.path) == (CLEAN, CLEAN, f"/x/{CLEAN}")
    lease = claimed(store, name=DIRTY)
    assert lease.owner == CLEAN
    call, *_ = store.ledger.admit(lease, intent(input=DIRTY, target=DIRTY, agent_call=DIRTY), decide_call, (1, 1), AT)
    assert (call.input, call.target, call.agent_call) == (CLEAN, CLEAN, CLEAN)
    call = store.ledger.settle(lease, Settlement("call-1", "succeed", AT, DIRTY, external_id=DIRTY, reason=DIRTY))
    assert call == store.calls.get("run-1", "call-1")
    assert (store.calls.list_receipts("run-1")[0].output, store.calls.list_receipts("run-1")[0].external_id) == (
        CLEAN,
        CLEAN,
    )
    change = RunChange(
        AT,
        (Fact("run.failed", {"text": DIRTY}),),
        RunStatus(state=RunState.FAILED, detail=DIRTY),
        Turn("run-1", 1, 1, 1, "work", DIRTY, DIRTY, DIRTY, AT, last_message=DIRTY),
        Check("run-1", 2, 1, DIRTY, AT, output=DIRTY),
        SessionUse(DIRTY, DIRTY),
        notice=Notice("n", "run-1", "kind", DIRTY, DIRTY, "", AT),
        actor=DIRTY,
    )
    run = store.leases.write_change(lease, change)
    assert run == store.runs.get("run-1")
    assert (run.status.detail, run.spec.prompt) == (CLEAN, DIRTY)
    assert (store.records.list_turns("run-1")[0].last_message, store.records.list_checks("run-1")[0].output) == (
        CLEAN,
        CLEAN,
    )
    assert store.records.get_sessions("run-1") == {CLEAN: CLEAN}
    assert store.records.list_notices()[0].title == CLEAN
    assert store.verify.check_all() == []


def test_a_backup_is_a_whole_database(store: Store, database: str, tmp_path: Path) -> None:
    _worked(store)
    copy = str(tmp_path / "copy.db")
    if database.startswith("postgresql:"):
        with pytest.raises(Refused, match=r"pg_dump --format=custom --file=\S+copy.db 'postgresql://postgres@"):
            store.admin.backup(copy)
        return
    store.admin.backup(copy)
    assert stat.S_IMODE(os.stat(copy).st_mode) == 0o600
    other = open_store(copy, create=False)
    assert (other.runs.get("run-1"), other.secret, other.verify.check_all()) == (
        store.runs.get("run-1"),
        store.secret,
        [],
    )
    other.close()
    assert [name for name in os.listdir(tmp_path) if "unfinished" in name] == []


def test_a_backup_never_replaces_a_file(store: Store, database: str, tmp_path: Path) -> None:
    existing = tmp_path / "precious"
    existing.write_text("mine")
    with pytest.raises(Refused):
        store.admin.backup(str(existing))
    assert existing.read_text() == "mine"
    if not database.startswith("postgresql:"):
        with pytest.raises(StoreError, match="cannot be written to"):
            store.admin.backup(str(tmp_path / "no" / "folder" / "copy.db"))


def test_a_store_opened_for_reading_reads_and_refuses_to_write(opened: Callable[..., Store]) -> None:
    _worked(opened())
    reader = opened(read_only=True)
    assert reader.runs.list_page(RunQuery())[0].id == "run-1"
    assert reader.verify.check_all() == []
    with pytest.raises(StoreError, match="cannot be written"):
        made(reader, "run-2")
