"""A row that differs from its digest is found; the same on every backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Check, Checkpoint, Notice, RunStatus, Turn
from jackline.domain.states import Failure, Proof, RunState
from jackline.features.cases.case_model import CaseEntry, EntryKind, NewCase, Problem
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, READ, begun, by_hand, drop_triggers, intent, made, owner

# Each covered column; the lease and the time of the last change are moved by a renewal without an event.
ITEM = {
    "kind": "post", "payload": "{}", "status": "done", "owner_agent": "eve", "notes": "n", "priority": 9, "attempts": 0,
    "max_attempts": 99, "token": 9, "question": "q", "answer": "a", "dead": 1, "finished_at": 9, "created_at": 9,
}  # fmt: skip
CASE = {
    "status": "closed", "request": "x", "problem": "{}", "hypotheses": 0, "commands": 9, "closeout": '{"a":1}',
    "closed_at": 9, "user_name": "eve", "path": "/x", "repository": "x", "run_id": "run-1", "created_at": 9,
}  # fmt: skip
RUN = {
    "state": "nonsense", "token": 9, "proof": "proved", "failure": "timeout", "reason": "human", "wake_at": 9,
    "number": 9, "parent": "run-2", "forked_at": 9, "lineage": "x", "calls": 0, "finished_at": 9,
}  # fmt: skip
RECORDS = {
    "turns": {"last_message": "x", "exit_code": 1, "prompt": "x", "usd_micros": 1},
    "checks": {"exit_code": 0, "output": "x", "command": "x"},
    "checkpoints": {"life": "{}", "cursor": "x", "at": 9},
}


def altered(store: Store, table: str, columns: Mapping[str, object], where: str) -> Iterator[tuple[str, list[str]]]:
    """Alter one column after the other, and tell what is found; afterwards each is as it was."""
    for column, value in columns.items():
        mark = "?" if store.admin.get_status().backend == "sqlite" else "%s"
        connection = store.driver._connection  # type: ignore[attr-defined]
        ((before,),) = by_hand(store, f"SELECT {column} FROM {table} WHERE {where}")
        assert before != value, column
        connection.execute(f"UPDATE {table} SET {column} = {mark} WHERE {where}", (value,))
        yield column, store.verify.check_all()
        connection.execute(f"UPDATE {table} SET {column} = {mark} WHERE {where}", (before,))
    assert store.verify.check_all() == []


def queued(store: Store) -> None:
    """An item that was claimed, asked for a person and was answered."""
    WorkQueue(store).enqueue(NewItem("item-1", "mail", '{"to":"ada"}'), AT, "ada")
    token = WorkQueue(store).claim("item-1", "bob", 1000, AT + 1).token
    WorkQueue(store).renew(Hold("item-1", "bob", token), 1000, AT + 2)
    WorkQueue(store).park(Hold("item-1", "bob", token), "which one?", AT + 3)
    WorkQueue(store).answer("item-1", "the first", AT + 4, "ada")
    store.journal.append(Fact("work.of.mine", {"status": "done"}), AT + 5, "ada", "item-1")


def test_no_column_of_a_work_item_is_altered_unseen(store: Store) -> None:
    queued(store)
    for column, found in altered(store, "work_items", ITEM, "id = 'item-1'"):
        assert found == ["work item item-1: its row was altered after it had been written"], column


def test_an_item_agrees_with_its_events_however_it_ended(store: Store) -> None:
    queued(store)
    for name, attempts in (("dead", 1), ("done", 5), ("waiting", 5), ("annotated", 5)):
        question = "well?" if name == "waiting" else ""
        WorkQueue(store).enqueue(
            NewItem(name, "mail", "{}", notes="n", max_attempts=attempts, question=question), AT, "ada"
        )
    WorkQueue(store).release(
        Hold("dead", "bob", WorkQueue(store).claim("dead", "bob", 1, AT).token), AT + 1, "too hard"
    )
    WorkQueue(store).resolve(Hold("done", "bob", WorkQueue(store).claim("done", "bob", 1, AT).token), "succeed", AT + 1)
    WorkQueue(store).annotate("annotated", "later", AT + 1, "ada")
    WorkQueue(store).resolve(Hold("item-1", "ada"), "cancel", AT + 9, "never mind")
    assert store.verify.check_all() == []
    by_hand(store, "UPDATE work_items SET dead = 0 WHERE id = 'dead'")
    assert store.verify.check_all() == ["work item dead: its row was altered after it had been written"]


def noted(store: Store) -> None:
    new = NewCase("case-1", "repository", "/srv/repository", "ada", "why is it red?", Problem(intent="find out"))
    CaseNotebook(store).start(new, "repository:ada", AT)
    for kind, text, data in (
        (EntryKind.HYPOTHESIS, "the cache", {}),
        (EntryKind.EVIDENCE, "seen", {"hypothesis": "H001"}),
        (EntryKind.COMMAND, "pytest", {"output": "3 passed", "exit_code": 0}),
    ):
        CaseNotebook(store).add_entry("case-1", CaseEntry("case-1", kind, 0, 0, 0, text, "open", data), AT, "ada")
    CaseNotebook(store).change_entry("case-1", EntryKind.HYPOTHESIS, 1, "accepted", AT + 1, "ada", {"note": "yes"})


def test_no_column_of_a_case_is_altered_unseen(store: Store) -> None:
    made(store)
    noted(store)
    for column, found in altered(store, "cases", CASE, "id = 'case-1'"):
        assert found == ["case case-1: its row was altered after it had been written"], column


def test_no_entry_of_a_case_is_altered_unseen(store: Store) -> None:
    noted(store)
    columns = {"text": "x", "status": "rejected", "data": '{"note":"no"}', "at": 9, "updated_at": 9}
    for _, found in altered(store, "case_entries", columns, "kind = 'hypothesis'"):
        assert found == ["case case-1: H001 was altered after it had been written"]
    printed = {"data": '{"output":"3 failed","exit_code":0}'}
    for _, found in altered(store, "case_entries", printed, "kind = 'command'"):
        assert found == ["case case-1: C001 was altered after it had been written"]
    by_hand(store, "UPDATE case_entries SET number = 7 WHERE kind = 'evidence'")
    by_hand(store, "INSERT INTO case_entries VALUES ('case-1', 'nonsense', 1, 1, 1, 'x', '', 'x')")
    assert store.verify.check_all() == [
        "case case-1: evidence 7 is among its entries, and no event records it",
        "case case-1: nonsense 1 is among its entries, and no event records it",
        "case case-1: E001 is missing from its entries",
    ]


def test_a_case_agrees_with_its_events_when_it_was_closed_moved_and_opened_again(store: Store) -> None:
    noted(store)
    CaseNotebook(store).close("case-1", {"summary": "it was the cache", "risks": ["none"]}, AT + 2, "ada")
    assert store.verify.check_all() == []
    CaseNotebook(store).relocate("case-1", "other", "/srv/other", AT + 3, "ada")
    CaseNotebook(store).reopen("case-1", "other:ada", AT + 4, "ada")
    assert store.verify.check_all() == []


def worked(store: Store) -> None:
    """A run with a record of each kind; its calls stand in the order in which they were asked for."""
    lease = begun(store)
    for number in (1, 2):
        store.ledger.admit(lease, intent(f"call-{number}", READ, key=f"k{number}"), decide_call, (1, 1), AT)
        store.ledger.settle(lease, Settlement(f"call-{number}", "succeed", AT + 1, "out"))
    turn = Turn("run-1", 1, 1, 1, "work", "scripted", None, "mend it", AT, AT + 1, 0, last_message="done")
    check = Check("run-1", 2, 1, "make test", AT + 1, AT + 2, 1, "it failed")
    checkpoint = Checkpoint("run-1", 2, "boundary", '{"turn":1}', "{}", AT + 2)
    said = Fact("agent.message", {"text": "done", "records": {"check 2": "mine"}})
    store.leases.write_change(lease, RunChange(AT + 1, (Fact("turn.ended"), said), turn=turn))
    failed = Fact("run.failed", {"failure": "proof", "proof": "refuted", "reason": None, "wake_at": None})
    life = RunStatus(state=RunState.FAILED, failure=Failure.PROOF, proof=Proof.REFUTED)
    notice = Notice("notice-1", "run-1", "run.failed", "it failed", "", "", AT + 3)
    store.leases.write_change(
        lease, RunChange(AT + 3, (failed,), life, check=check, checkpoint=checkpoint, notice=notice)
    )


def test_what_the_events_say_of_a_run_is_not_altered_unseen(store: Store) -> None:
    worked(store)
    made(store, "run-2")
    by_hand(store, "UPDATE repositories SET next_number = 99")
    for column, found in altered(store, "runs", RUN, "id = 'run-1'"):
        said = "its row was altered after it had been written"
        assert [one for one in found if said in one], (column, found)
        assert said in "".join(store.verify.verify_run("run-1").problems)
    by_hand(store, "UPDATE calls SET number = 9 WHERE id = 'call-1'")
    assert store.verify.check_all() == ["run run-1: the order of its calls was altered after they had been written"]


@pytest.mark.parametrize("table", RECORDS)
def test_no_record_of_a_run_is_altered_dropped_or_inserted_unseen(store: Store, table: str) -> None:
    worked(store)
    name = {"turns": "turn 1", "checks": "check 2", "checkpoints": "checkpoint 2 boundary"}[table]
    for _, found in altered(store, table, RECORDS[table], "run_id = 'run-1'"):
        assert found == [f"run run-1: {name} was altered after it had been written"]
    by_hand(store, f"UPDATE {table} SET {'number' if table == 'turns' else 'step'} = 5")
    (inserted, missing) = store.verify.check_all()
    assert inserted == f"run run-1: {name.replace('1', '5').replace('2', '5')} exists, and no event records it"
    assert missing == f"run run-1: {name} is missing"


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("UPDATE specs SET spec = 'nonsense'", "its spec was altered"),
        ("DELETE FROM specs", "its spec was altered"),
        (
            "UPDATE notices SET chain_head = 'gone'",
            "notice notice-1 announced the head gone, which is not on the chain",
        ),
        ("UPDATE calls SET state = 'nonsense' WHERE id = 'call-1'", "call call-1 was altered"),
        ("UPDATE calls SET call_class = 'nonsense' WHERE id = 'call-1'", "call call-1 was altered"),
    ],
)
def test_check_and_verify_find_the_same_and_stumble_over_nothing(store: Store, tampering: str, said: str) -> None:
    worked(store)
    by_hand(store, tampering)
    (found,) = store.verify.check_all()
    assert said in found
    assert store.verify.verify_run("run-1").problems == (found,)


def archive_of(store: Store) -> list[Event]:
    worked(store)
    archived = store.records.list_events("run-1")
    store.admin.drop_archived_events("run-1", archived[-1].hash, AT + 9)
    return archived


def test_check_goes_through_an_archive_that_is_at_hand(store: Store) -> None:
    archived = archive_of(store)
    assert (
        store.verify.check_all()
        == store.verify.check_all(lambda _: None)
        == store.verify.check_all({"run-1": archived}.get)
        == []
    )
    forged = [*archived[:-1], archived[-1]._replace(actor="eve")]
    assert store.verify.check_all(lambda _: forged) == [f"run run-1: its chain is broken at event {len(archived)}"]
    by_hand(store, "UPDATE checks SET exit_code = 0")
    altered_check = "run run-1: check 2 was altered after it had been written"
    assert store.verify.check_all({"run-1": archived}.get) == [altered_check]
    assert store.verify.check_all() == []  # nobody can tell without the archive


def test_an_archive_goes_on_only_as_the_chain_does(store: Store) -> None:
    archived = archive_of(store)
    last = archived[-1]
    more = place(Fact("run.succeeded"), "run-1", last.seq + 1, AT, "engine", last.hash)
    (found,) = store.verify.verify_run("run-1", [*archived, more]).problems
    assert found == f"run run-1: its archive continues after event {last.seq}, and not as its chain does"
    store.leases.claim("run-1", owner("worker-2"), 1000, AT + 9)
    assert store.verify.verify_run("run-1", [*archived, *store.records.list_events("run-1")]).problems == ()


def test_an_event_that_jackline_never_writes_is_found(store: Store) -> None:
    """Whoever computes a chain anew has to know what jackline would have said."""
    queued(store)
    drop_triggers(store)
    (*_, before, last) = store.records.list_events("work:item-1")
    forged = place(Fact("work.resolved", {"nothing": 1}), "work:item-1", last.seq, AT, "eve", before.hash)
    by_hand(store, f"UPDATE events SET kind = 'work.resolved', actor = 'eve', at = {AT}, data = '{forged.data}', "
                   f"hash = '{forged.hash}' WHERE stream = 'work:item-1' AND seq = {last.seq}")  # fmt: skip
    by_hand(store, f"UPDATE work_items SET chain_head = '{forged.hash}'")
    assert store.verify.check_all() == [f"work item item-1: event {last.seq} was not written by jackline"]
