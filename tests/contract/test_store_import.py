"""What a predecessor left is written once, with chains that hold, on both stores."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from jackline.domain.changes import Changes
from jackline.domain.limits import Spent
from jackline.domain.records import Attempt, Call, Owner, RunStatus, Turn
from jackline.domain.spec import Spec
from jackline.domain.states import (
    CallClass,
    CallState,
    Decision,
    Failure,
    Replay,
    RunState,
    WorkStatus,
)
from jackline.errors import Refused
from jackline.features.cases.case_model import Case, CaseEntry, CaseStatus, EntryKind, Problem
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.importers.import_store import Imports
from jackline.features.importers.imported_records import ImportedCall, ImportedEvent, ImportedRun, ImportResult
from jackline.features.reports.lines import Spending
from jackline.features.reports.report_queries import ReportQueries
from jackline.features.reports.retro_queries import RetroQueries
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem, WorkItem
from jackline.formatting import format_date
from jackline.store.models import RunQuery, TimelineQuery
from jackline.store.store import Store
from tests.conftest import Open
from tests.support.stores import AT, LEASE_MS, data_of

NOW = AT + 10_000_000
SECRET = "sk-ant-api03-" + "a1B2" * 8
WHO = "ada"
STREAM = "journal:agent-state-1"


def call(name: str, kind: CallClass, state: CallState, **more: Any) -> ImportedCall:
    replay = Replay.ASK if kind is CallClass.EFFECT else Replay.EXACT
    occurrence = int(kind is CallClass.EFFECT)
    made = Call(
        name, "", 1, 1, 1, occurrence, "mail", kind, replay, Decision.ALLOW, "rule", "imported", f"key-{name}", "",
        more.pop("input", "{}"), state, AT + 5, output=more.pop("output", "sent"), reason=more.pop("reason", ""),
    )  # fmt: skip
    return ImportedCall(made, AT + 6, more.pop("external_id", ""))


def imported(run_id: str = "pair-1", **more: Any) -> ImportedRun:
    values: dict[str, Any] = {
        "origin": "agentpair r/1",
        "since": "2026-01-01",
        "repository": "/srv/shop",
        "spec": Spec("mend it", "/srv/shop", "claude", options={"imported": "agentpair"}),
        "status": RunStatus(RunState.SUCCEEDED, attempt=1, turn=1, spent=Spent(tokens_output=7)),
        "created_at": AT,
        "updated_at": AT + 9,
        "finished_at": AT + 9,
        "started_at": AT + 1,
        "events": (ImportedEvent(AT + 3, "agent.message", "claude", {"text": "hello"}),),
        "turns": (Turn("", 1, 1, 1, "work", "claude", None, "do", AT + 1, AT + 8, last_message="done"),),
        "attempts": (Attempt("", 1, "-", "-", "", 0, None, None, AT + 1, AT + 9, "succeeded"),),
        "about": {"from": "agentpair"},
    }
    return ImportedRun(run_id, **(values | more))


def item(item_id: str = "msg-1", **more: Any) -> WorkItem:
    values = {"kind": "reply", "payload": '{"to":"bob"}', "status": WorkStatus.PENDING, "owner_agent": None}
    return WorkItem(item_id, created_at=AT, updated_at=AT + 1, **(values | more))


def case(case_id: str = "20260102T030405Z-fix", **more: Any) -> Case:
    values: dict[str, Any] = {"repository": "r1", "path": "/srv/shop", "request": "fix it", "status": CaseStatus.OPEN}
    values |= more
    return Case(case_id, user_name=WHO, run_id=None, problem=Problem("debug"), created_at=AT, updated_at=AT, **values)


ENTRIES = (
    CaseEntry("", EntryKind.HYPOTHESIS, 1, AT, AT, "docs outrank", "accepted", {"note": "seen"}),
    CaseEntry("", EntryKind.HYPOTHESIS, 7, AT, AT, "stale", "open"),
    CaseEntry("", EntryKind.LEARNING, 1, AT, AT, "keep it", "test", {"kind": "test-gap", "path": "t.py"}),
)
EVENTS = (
    ImportedEvent(AT - 5, "work_item_created", "forge", {"payload": {}}),
    ImportedEvent(AT - 4, "work_item_claimed", "forge", {"payload": {"token": SECRET}}),
)


# --- runs


def test_a_run_is_written_with_all_that_is_known_of_it(store: Store) -> None:
    calls = (
        call("effect", CallClass.EFFECT, CallState.DONE, external_id="message-9"),
        call("doubt", CallClass.EFFECT, CallState.IN_DOUBT, output=""),
        call("read", CallClass.READ, CallState.DONE, output="x" * 40_000),
        call("fails", CallClass.LOCAL, CallState.FAILED, reason="exit 1"),
    )
    new = imported(calls=calls, changes=Changes(("abc fix it",), 2, 7, 1))
    assert Imports(store).import_run(new, NOW, WHO) is ImportResult.IMPORTED
    run = store.runs.get("pair-1")
    assert run is not None
    assert (run.status.state, run.finished_at, run.updated_at, run.owner) == (RunState.SUCCEEDED, AT + 9, AT + 9, None)
    assert (run.spec.imported, run.number, run.status.spent.tokens) == ("agentpair", 1, 7)
    assert [one.last_message for one in store.records.list_turns(run.id)] == ["done"]
    assert [one.outcome for one in store.records.list_attempts(run.id)] == ["succeeded"]
    assert [(one.call_id, one.external_id, one.origin) for one in store.calls.list_receipts(run.id)] == [
        ("effect", "message-9", "import")
    ]
    assert [one.state for one in store.calls.list_all(run.id)] == ["done", "in_doubt", "done", "failed"]
    assert store.blobs.load_call(store.calls.list_all(run.id)[2]).output == "x" * 40_000
    assert store.records.get_changes(run.id) == Changes(("abc fix it",), 2, 7, 1)
    assert store.verify.verify_run(run.id).problems == ()
    assert store.verify.check_all() == []


def test_its_events_keep_their_times_and_are_chained(store: Store) -> None:
    Imports(store).import_run(imported(), NOW, WHO)
    events = store.records.list_events("pair-1")
    assert [(event.at, event.kind, event.actor) for event in events] == [
        (AT, "run.created", "engine"),
        (AT + 3, "agent.message", "claude"),
        (AT + 9, "run.succeeded", "engine"),
        (NOW, "run.imported", WHO),
    ]
    assert data_of(events[-1]) == {"from": "agentpair"}


def test_a_second_import_changes_nothing(store: Store) -> None:
    Imports(store).import_run(imported(), NOW, WHO)
    before, events = store.runs.get("pair-1"), store.records.list_events("pair-1")
    other = imported(status=RunStatus(RunState.FAILED, failure=Failure.CRASHED), turns=())
    assert Imports(store).import_run(other, NOW + 5, "bob") is ImportResult.ALREADY
    assert (store.runs.get("pair-1"), store.records.list_events("pair-1")) == (before, events)
    assert len(store.runs.list_page(RunQuery())) == 1


def test_what_it_spent_is_counted_on_the_day_it_ended_and_once(store: Store) -> None:
    spent = RunStatus(RunState.SUCCEEDED, attempt=1, agent="codex", spent=Spent(tokens_output=7, usd_micros=50))
    for _ in range(2):
        Imports(store).import_run(imported(status=spent), NOW, WHO)
    Imports(store).import_run(
        imported("pair-2", origin="agentpair r/2", status=RunStatus(RunState.SUCCEEDED)), NOW, WHO
    )
    assert ReportQueries(store).list_spending("0000", "9999") == [Spending(format_date(AT + 9), "codex", 50, 7)]


@pytest.mark.parametrize(
    ("origin", "since", "became"),
    [
        ("agentpair r/1", "2026-01-01", ImportResult.ALREADY),
        ("agentpair r/1", "", ImportResult.ALREADY),
        ("agentpair r/1", "2026-09-09", ImportResult.TAKEN),
        ("agentpair r/2", "2026-01-01", ImportResult.TAKEN),
    ],
)
def test_another_run_of_the_same_name_is_told_by_its_time(
    store: Store, origin: str, since: str, became: ImportResult
) -> None:
    Imports(store).import_run(imported(), NOW, WHO)
    assert Imports(store).import_run(imported(origin=origin, since=since), NOW, WHO) is became
    assert Imports(store).import_run(imported(origin=origin, since=since), NOW, WHO, rehearse=True) is became


def test_a_rehearsal_writes_nothing(store: Store) -> None:
    assert Imports(store).import_run(imported(), NOW, WHO, rehearse=True) is ImportResult.IMPORTED
    assert Imports(store).import_item(item(), EVENTS, NOW, WHO, rehearse=True) is ImportResult.IMPORTED
    assert Imports(store).import_case(case(), ENTRIES, NOW, WHO, rehearse=True) is ImportResult.IMPORTED
    assert Imports(store).import_events(STREAM, [(1, EVENTS[0])], rehearse=True) == 1
    assert set(store.admin.get_status().counts.values()) == {0}


def test_an_imported_run_is_never_claimed(store: Store) -> None:
    failed = RunStatus(RunState.FAILED, failure=Failure.CRASHED, attempt=1)
    Imports(store).import_run(imported(status=failed), NOW, WHO)
    with pytest.raises(Refused, match="was imported from agentpair"):
        store.leases.claim("pair-1", Owner("w", "h", "b", 1), LEASE_MS, NOW)
    assert store.verify.check_all() == []


def test_secrets_are_gone_before_anything_is_written(store: Store) -> None:
    new = imported(
        spec=Spec(f"use {SECRET}", "/srv", "claude", proof=f"curl -H {SECRET}", options={"imported": "agentpair"}),
        status=RunStatus(RunState.FAILED, failure=Failure.AGENT_ERROR, detail=f"bad {SECRET}"),
        events=(ImportedEvent(AT, "agent.message", "claude", {"text": SECRET}),),
        turns=(Turn("", 1, 1, 1, "work", "claude", None, SECRET, AT, last_message=SECRET),),
        calls=(call("one", CallClass.EFFECT, CallState.DONE, input=SECRET, output=SECRET, reason=SECRET),),
        changes=Changes((f"abc {SECRET}",), 1, 1, 1),
        about={"path": SECRET},
    )
    Imports(store).import_run(new, NOW, WHO)
    Imports(store).import_item(item(payload=json.dumps({"key": SECRET}), notes=SECRET), EVENTS, NOW, WHO)
    entry = CaseEntry("", EntryKind.EVIDENCE, 1, AT, AT, SECRET, "", {"hypothesis": SECRET})
    Imports(store).import_case(case(request=SECRET, closeout={"summary": SECRET}), [entry], NOW, WHO)
    Imports(store).import_events(STREAM, [(1, ImportedEvent(AT, "x", WHO, {"payload": SECRET}))])
    events = [
        event
        for stream in ("pair-1", "work:msg-1", f"case:{case().id}", STREAM)
        for event in store.records.list_events(stream)
    ]
    found = [
        store.runs.get("pair-1"), store.records.list_turns("pair-1"), store.calls.list_all("pair-1"),
        store.calls.list_receipts("pair-1"), events,
        store.records.get_changes("pair-1"), WorkItems(store).get("msg-1"), Cases(store).get(case().id),
        Cases(store).list_entries(case().id),
    ]  # fmt: skip
    assert len(events) == 11
    assert SECRET not in repr(found)
    assert store.verify.check_all() == []


def test_what_no_database_can_hold_is_replaced(store: Store) -> None:
    odd = "nul \x00 and half \ud800 a character"
    new = imported(
        origin=odd,
        spec=Spec(odd, "/srv", "claude", odd, options={"imported": "agentpair"}),
        events=(ImportedEvent(AT, "agent.message", odd, {"text": odd}),),
        calls=(call("one", CallClass.EFFECT, CallState.DONE, input=odd, output=odd, reason=odd, external_id=odd),),
    )
    assert Imports(store).import_run(new, NOW, WHO) is ImportResult.IMPORTED
    assert Imports(store).import_run(new, NOW, WHO) is ImportResult.ALREADY
    assert (
        Imports(store).import_item(item(notes=odd), [ImportedEvent(AT, "x", odd, {"payload": odd})], NOW, WHO)
        is ImportResult.IMPORTED
    )
    entries = [CaseEntry("", EntryKind.COMMAND, 1, AT, AT, odd, "pass", {"output": odd})]
    assert Imports(store).import_case(case(request=odd), entries, NOW, WHO) is ImportResult.IMPORTED
    assert Imports(store).import_case(case(request=odd), entries, NOW, WHO) is ImportResult.ALREADY
    assert store.verify.check_all() == []
    assert store.verify.verify_run("pair-1").problems == ()


# --- items


def test_an_item_keeps_its_id_and_its_events(store: Store) -> None:
    assert Imports(store).import_item(item(), EVENTS, NOW, WHO) is ImportResult.IMPORTED
    kept = WorkItems(store).get("msg-1")
    assert kept is not None
    assert (kept.status, kept.payload, kept.event_seq) == (WorkStatus.PENDING, '{"to":"bob"}', 3)
    events = store.records.list_events("work:msg-1")
    assert [(event.at, event.kind, event.actor) for event in events] == [
        (AT - 5, "work_item_created", "forge"),
        (AT - 4, "work_item_claimed", "forge"),
        (NOW, "work.imported", WHO),
    ]
    assert store.verify.check_all() == []


def test_an_item_that_was_in_flight_can_be_taken_over(store: Store) -> None:
    held = item(status=WorkStatus.IN_FLIGHT, owner_agent="forge", attempts=1, token=1)
    Imports(store).import_item(held, (), NOW, WHO)
    assert [one.id for one in WorkItems(store).list_unfinished(NOW)] == ["msg-1"]
    taken = WorkQueue(store).claim("msg-1", "worker", LEASE_MS, NOW)
    assert (taken.owner_agent, taken.token) == ("worker", 2)
    WorkQueue(store).resolve(Hold("msg-1", "worker", 2), "succeed", NOW + 1)
    assert Imports(store).import_item(held, (), NOW, WHO) is ImportResult.ALREADY
    assert WorkItems(store).get("msg-1") is not None
    assert store.verify.check_all() == []


def test_an_id_that_has_other_content_here_is_left_alone(store: Store) -> None:
    WorkQueue(store).enqueue(NewItem("msg-1", "reply", '{"to":"eve"}'), AT, "eve")
    before = WorkItems(store).get("msg-1")
    assert Imports(store).import_item(item(), EVENTS, NOW, WHO) is ImportResult.TAKEN
    assert WorkItems(store).get("msg-1") == before
    WorkQueue(store).enqueue(NewItem("msg-2", "reply", '{"to":"bob"}'), AT, "eve")
    assert Imports(store).import_item(item("msg-2"), EVENTS, NOW, WHO) is ImportResult.ALREADY


# --- cases


def test_a_case_is_written_with_its_entries_and_goes_on_counting(store: Store) -> None:
    assert Imports(store).import_case(case(), ENTRIES, NOW, WHO) is ImportResult.IMPORTED
    kept = Cases(store).get(case().id)
    assert kept is not None
    assert (dict(kept.counts)["hypothesis"], dict(kept.counts)["learning"]) == (7, 1)
    assert [entry.id for entry in Cases(store).list_entries(kept.id)] == ["H001", "H007", "L001"]
    added = CaseNotebook(store).add_entry(
        kept.id, CaseEntry(kept.id, EntryKind.HYPOTHESIS, 0, NOW, NOW, "new", "open"), NOW, WHO
    )
    assert added.id == "H008"
    assert [found.summary for found in RetroQueries(store).iter_learnings(AT, NOW)] == ["keep it"]
    assert store.verify.check_all() == []


def test_a_case_is_active_nowhere_and_a_closed_one_is_closed(store: Store) -> None:
    closed = case(status=CaseStatus.CLOSED, closed_at=AT + 1, closeout={"summary": "done", "verification": ["true"]})
    Imports(store).import_case(closed, (), NOW, WHO)
    assert Cases(store).get_active(f"r1:{WHO}") is None
    with pytest.raises(Refused, match="closed"):
        CaseNotebook(store).add_entry(
            closed.id, CaseEntry(closed.id, EntryKind.COMMAND, 0, AT, AT, "ls", "pass"), NOW, WHO
        )


@pytest.mark.parametrize(
    ("more", "became"),
    [
        ({}, ImportResult.ALREADY),
        ({"request": ""}, ImportResult.ALREADY),
        ({"request": "something else"}, ImportResult.TAKEN),
        ({"repository": "r2"}, ImportResult.TAKEN),
    ],
)
def test_another_case_of_the_same_name_is_told_apart(store: Store, more: dict[str, Any], became: ImportResult) -> None:
    Imports(store).import_case(case(), ENTRIES, NOW, WHO)
    before = Cases(store).get(case().id)
    assert Imports(store).import_case(case(**more), (), NOW, WHO) is became
    assert Cases(store).get(case().id) == before


# --- events


def test_events_of_a_stream_are_added_by_their_numbers(store: Store) -> None:
    numbered = [(number, ImportedEvent(AT + number, "noted", WHO, {"payload": number})) for number in (3, 5, 9)]
    assert Imports(store).import_events(STREAM, numbered[:2]) == 2
    assert Imports(store).import_events(STREAM, numbered) == 1
    assert Imports(store).import_events(STREAM, numbered) == 0
    assert Imports(store).import_events(STREAM, numbered, rehearse=True) == 0
    assert [json.loads(event.data)["id"] for event in store.records.list_events(STREAM)] == [3, 5, 9]
    assert [event.kind for event in store.journal.list_timeline(TimelineQuery(stream=STREAM))] == ["noted"] * 3
    assert Imports(store).import_events(STREAM, []) == 0
    assert store.verify.check_all() == []


# --- races


def test_several_importers_at_once_write_each_thing_once(opened: Open) -> None:
    results: list[Any] = []
    begin = threading.Barrier(4)

    def work(store: Store) -> None:
        begin.wait()
        results.append(Imports(store).import_run(imported(), NOW, WHO))
        results.append(Imports(store).import_item(item(), EVENTS, NOW, WHO))
        results.append(Imports(store).import_case(case(), ENTRIES, NOW, WHO))
        results.append(Imports(store).import_events(STREAM, [(1, EVENTS[0]), (2, EVENTS[1])]))

    stores = [opened() for _ in range(4)]
    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count(ImportResult.IMPORTED) == 3
    assert results.count(ImportResult.ALREADY) == 9
    assert sorted(one for one in results if isinstance(one, int)) == [0, 0, 0, 2]
    assert len(stores[0].records.list_events(STREAM)) == 2
    assert stores[0].verify.check_all() == []
