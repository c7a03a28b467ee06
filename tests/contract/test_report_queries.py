"""Queries of dashboards and retros on each backend: the right rows, in order, bounded; every cent counted once."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from jackline.domain.call_gate import Admission
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.records import Check, Run, RunStatus, Turn
from jackline.domain.spec import Spec
from jackline.domain.states import Decision, Failure, Phase, RunState, WaitReason
from jackline.errors import Fenced
from jackline.features.reports import retro_queries
from jackline.features.reports.lines import Move, Spending
from jackline.features.reports.report_queries import ReportQueries
from jackline.features.reports.retro_queries import RetroQueries
from jackline.store import queries, rows, schema
from jackline.store.models import RunChange
from jackline.store.open import _driver, migrate, open_store
from jackline.store.store import Store
from tests.conftest import BACKENDS
from tests.support.stores import AT, LEASE_MS, begun, by_hand, claimed, intent, made, owner

DAY = 86_400_000
AT_DAY = time.strftime("%Y-%m-%d", time.gmtime(AT // 1000))
RUNNING = RunStatus(state=RunState.RUNNING, phase=Phase.WORKING, attempt=1)
MARK = {"sqlite": "?", "postgres": "%s"}


def ended(store: Store, run_id: str, at: int, state: RunState = RunState.SUCCEEDED, **more: Any) -> None:
    lease = begun(store, run_id)
    fact = Fact(f"run.{state}", {"failure": more.get("failure")})
    store.leases.write_change(lease, RunChange(at, (fact,), status=RUNNING._replace(state=state, phase=None, **more)))


def parked(store: Store, run_id: str, reason: WaitReason, at: int = AT + 10) -> None:
    lease = begun(store, run_id)
    life = RUNNING._replace(state=RunState.WAITING, reason=reason, phase=None, detail="d" * 1000)
    store.leases.write_change(lease, RunChange(at, (Fact("run.waiting", {"reason": reason}),), status=life))


def insert(store: Store, table: str, **values: object) -> None:
    mark = MARK[store.driver.backend]
    marks = ", ".join([mark] * len(values))
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})"
    store.driver._connection.execute(sql, list(values.values()))  # type: ignore[attr-defined]


def put_item(store: Store, item_id: str, status: str, at: int = AT, **more: object) -> None:
    known: dict[str, object] = {
        "kind": "mail", "payload": "{}", "owner_agent": None, "notes": "", "priority": 0, "attempts": 0,
        "max_attempts": 5, "token": 0, "question": "", "answer": "", "dead": 0, "finished_at": None, "event_seq": 0,
        "chain_head": "",
    }  # fmt: skip
    insert(store, "work_items", id=item_id, status=status, created_at=at, updated_at=at, **(known | more))


def put_learning(store: Store, case_id: str, number: int, at: int, data: str = "{}", text: str = "it broke") -> None:
    known = by_hand(store, f"SELECT 1 FROM cases WHERE id = '{case_id}'")
    if not known:
        insert(
            store, "cases", id=case_id, repository="r", path="/srv", user_name="ada", run_id=None, status="open",
            request="", problem="{}", hypotheses=0, evidence=0, commands=0, learnings=0, closeout="{}",
            created_at=at, updated_at=at, closed_at=None, event_seq=0, chain_head="",
        )  # fmt: skip
    insert(
        store, "case_entries", case_id=case_id, kind="learning", number=number, at=at, updated_at=at, text=text,
        status="test", data=data,
    )  # fmt: skip


# --- runs ----------------------------------------------------------------------------------------------------


def test_runs_in_a_state_oldest_first_and_no_more_than_asked_for(store: Store) -> None:
    for place in range(4):
        made(store, f"run-{place}", at=AT + place)
    assert [run.id for run in ReportQueries(store).list_runs_in("queued", 3)] == ["run-0", "run-1", "run-2"]
    assert [ReportQueries(store).count_runs("queued", most) for most in (2, 100)] == [2, 4]
    assert ReportQueries(store).list_runs_in("running", 3) == []
    run = ReportQueries(store).list_runs_in("queued", 1)[0]
    assert (run.agent, run.task, run.path, run.state) == ("scripted", "adhoc", "/srv/repository", "queued")


def test_waiting_runs_by_reason_oldest_first(store: Store) -> None:
    for name, reason in (("a", WaitReason.LIMIT), ("b", WaitReason.HUMAN), ("c", WaitReason.LIMIT)):
        parked(store, name, reason)
    assert [run.id for run in ReportQueries(store).list_runs_waiting("limit", 10)] == ["a", "c"]
    assert [run.id for run in ReportQueries(store).list_runs_waiting("human", 10)] == ["b"]
    assert len(ReportQueries(store).list_runs_waiting("human", 10)[0].detail) == 400


def test_failed_runs_since_a_time_newest_first(store: Store) -> None:
    ended(store, "old", AT + 10, RunState.FAILED, failure=Failure.TIMEOUT)
    ended(store, "new", AT + 20, RunState.FAILED, failure=Failure.PROOF)
    ended(store, "well", AT + 30)
    assert [(run.id, run.failure) for run in ReportQueries(store).list_runs_failed(AT, 10)] == [
        ("new", "proof"),
        ("old", "timeout"),
    ]
    assert [run.id for run in ReportQueries(store).list_runs_failed(AT + 11, 10)] == ["new"]


def test_finished_runs_of_a_span_over_pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retro_queries, "_PAGE", 2)
    for place in range(7):
        ended(store, f"run-{place}", AT + 100 + place // 3)  # several in one millisecond
    made(store, "queued")
    found = [run.id for run in RetroQueries(store).iter_finished_runs(AT + 100, AT + 102)]
    assert found == [f"run-{place}" for place in range(6)]
    assert list(RetroQueries(store).iter_finished_runs(AT + 200, AT + 300)) == []


# --- items ---------------------------------------------------------------------------------------------------


def test_items_by_status_and_dead_letters(store: Store) -> None:
    put_item(store, "b", "waiting_human", AT + 1, question="q" * 1000)
    put_item(store, "a", "waiting_human", AT)
    put_item(store, "f", "in_flight", owner_agent="ada", attempts=2)
    put_item(store, "d1", "failed", dead=1, finished_at=AT + 5)
    put_item(store, "d2", "failed", dead=1, finished_at=AT + 6)
    put_item(store, "x", "failed", finished_at=AT + 7)
    assert [item.id for item in ReportQueries(store).list_items_in("waiting_human", 10)] == ["a", "b"]
    assert len(ReportQueries(store).list_items_in("waiting_human", 10)[1].question) == 400
    (held,) = ReportQueries(store).list_items_in("in_flight", 10)
    assert (held.owner, held.attempts, held.max_attempts) == ("ada", 2, 5)
    assert [item.id for item in ReportQueries(store).list_dead_items(10)] == ["d2", "d1"]
    assert [item.id for item in ReportQueries(store).list_dead_items(1)] == ["d2"]


def test_kinds_are_counted_no_further_than_asked_for(store: Store) -> None:
    for place in range(5):
        put_item(store, f"m{place}", "pending", kind="mail")
    put_item(store, "p", "pending", kind="post")
    put_item(store, "z", "pending", kind="zebra")
    put_item(store, "w", "waiting_human", kind="mail")
    assert ReportQueries(store).count_kinds("pending", 3, 10) == [("mail", 3), ("post", 1), ("zebra", 1)]
    assert ReportQueries(store).count_kinds("pending", 100, 2) == [("mail", 5), ("post", 1)]
    assert ReportQueries(store).count_kinds("in_flight", 3, 10) == []


# --- learnings -----------------------------------------------------------------------------------------------


def test_learnings_newest_first_and_of_a_span(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retro_queries, "_PAGE", 2)
    put_learning(store, "c1", 1, AT, json.dumps({"kind": "test-gap", "path": "tests/x.py"}))
    put_learning(store, "c1", 2, AT + 1, json.dumps({"kind": "doc-gap", "reason": "no"}))
    for number in (3, 4, 5):
        put_learning(store, "c2", number, AT + 2)
    put_learning(store, "c2", 6, AT + 3, '["strange"]')
    assert [one.id for one in ReportQueries(store).list_newest_learnings(2)] == ["L006", "L005"]
    found = list(RetroQueries(store).iter_learnings(AT, AT + 3))
    assert [one.number for one in found] == [1, 2, 3, 4, 5]
    assert (found[0].kind, found[0].path, found[0].action, found[0].resolved) == (
        "test-gap",
        "tests/x.py",
        "test",
        True,
    )
    assert (found[1].reason, found[2].resolved) == ("no", False)
    assert ReportQueries(store).list_newest_learnings(1)[0].kind == ""


# --- events, turns, checks -----------------------------------------------------------------------------------


def test_the_moves_of_runs_in_a_span(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retro_queries, "_PAGE", 2)
    parked(store, "run-1", WaitReason.LIMIT, AT + 10)
    store.leases.claim("run-1", owner(), LEASE_MS, AT + 20)
    moves = list(RetroQueries(store).iter_state_changes(AT, AT + 20))
    assert [(one.at - AT, one.kind, one.reason) for one in moves] == [
        (0, "run.created", ""),
        (1, "run.claimed", ""),
        (10, "run.waiting", "limit"),
    ]
    assert [one.kind for one in RetroQueries(store).iter_state_changes(AT + 10, AT + 100)] == [
        "run.waiting",
        "run.claimed",
    ]
    last = RetroQueries(store).get_last_state_change("run-1")
    assert last is not None
    assert (last.kind, last.at) == ("run.claimed", AT + 20)
    assert RetroQueries(store).get_last_state_change("run-1", last.seq) == Move(
        "run-1", 3, AT + 10, "run.waiting", "limit"
    )
    assert RetroQueries(store).get_last_state_change("nobody") is None
    assert RetroQueries(store).get_last_state_change("run-1", until=AT + 10) == Move("run-1", 2, AT + 1, "run.claimed")
    assert RetroQueries(store).get_next_state_change("run-1", 2) == Move("run-1", 3, AT + 10, "run.waiting", "limit")
    assert RetroQueries(store).get_next_state_change("run-1", last.seq) is None


def test_the_runs_that_had_not_ended_by_a_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retro_queries, "_PAGE", 1)
    for name, at in (("before", 99), ("then", 100), ("after", 101)):
        ended(store, name, AT + at)
    for name in ("queued-1", "queued-2"):
        made(store, name)
    begun(store, "running")
    parked(store, "waiting", WaitReason.LIMIT)
    made(store, "late", at=AT + 100)
    found = [run.id for run in RetroQueries(store).iter_live_runs(AT + 100)]
    assert sorted(found) == ["after", "queued-1", "queued-2", "running", "then", "waiting"]


def test_an_event_of_a_journal_is_no_move_of_a_run(store: Store) -> None:
    insert(store, "events", stream="journal:", seq=1, at=AT, kind="run.waiting", actor="x", data="{}", hash="h")
    assert list(RetroQueries(store).iter_state_changes(AT, AT + 1)) == []


def test_turns_and_checks_of_a_run(store: Store) -> None:
    lease = begun(store)
    turn = Turn("run-1", 1, 2, 1, "work", "claude", None, "p", AT + 3, failure="limit")
    check = Check("run-1", 3, 1, "make test", AT + 4, AT + 5, 1, "", "tree-1")
    store.leases.write_change(lease, RunChange(AT + 5, (Fact("turn.ended"),), turn=turn, check=check))
    (seen,) = RetroQueries(store).list_turns("run-1")
    assert (seen.step, seen.agent, seen.failure) == (2, "claude", "limit")
    (told,) = RetroQueries(store).list_checks("run-1")
    assert (told.command, told.exit_code, told.tree) == ("make test", 1, "tree-1")


# --- spending ------------------------------------------------------------------------------------------------


def spent(usd_micros: int, tokens: int) -> Spent:
    return Spent(usd_micros=usd_micros, tokens_input=tokens - 1, tokens_output=1, tokens_cached=5)


def sums(store: Store) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the days say and what the runs say."""
    days = by_hand(store, "SELECT SUM(usd_micros), SUM(tokens) FROM spending")[0]
    runs = by_hand(store, "SELECT SUM(usd_micros), SUM(tokens_input + tokens_output) FROM runs")[0]
    return tuple(int(one or 0) for one in days), tuple(int(one or 0) for one in runs)


def test_what_is_spent_is_added_to_its_day_and_agent(store: Store) -> None:
    lease = begun(store)
    fact = (Fact("x"),)
    store.leases.write_change(lease, RunChange(AT + 2, fact, status=RUNNING._replace(spent=spent(100, 10))))
    store.leases.write_change(
        lease, RunChange(AT + 3, fact, status=RUNNING._replace(spent=spent(100, 10)))
    )  # nothing new
    store.leases.write_change(lease, RunChange(AT + 4, fact))  # no life at all
    store.leases.write_change(lease, RunChange(AT + DAY, fact, status=RUNNING._replace(spent=spent(250, 15))))
    next_day = time.strftime("%Y-%m-%d", time.gmtime((AT + DAY) // 1000))
    assert ReportQueries(store).list_spending(AT_DAY, next_day) == [
        Spending(AT_DAY, "scripted", 100, 10),
        Spending(next_day, "scripted", 150, 5),
    ]
    assert ReportQueries(store).list_spending(AT_DAY, AT_DAY) == [Spending(AT_DAY, "scripted", 100, 10)]
    assert sums(store) == ((250, 15), (250, 15))


def test_a_turn_is_charged_to_its_own_agent_though_the_next_one_takes_over(store: Store) -> None:
    lease = begun(store)
    turn = Turn("run-1", 1, 2, 1, "work", "claude", None, "p", AT + 2, ended_at=AT + 3, failure="limit")
    life = RUNNING._replace(spent=spent(70, 7), agent="codex")
    store.leases.write_change(lease, RunChange(AT + 3, (Fact("agent.switched"),), status=life, turn=turn))
    store.leases.write_change(lease, RunChange(AT + 4, (Fact("x"),), status=life._replace(spent=spent(100, 9))))
    assert ReportQueries(store).list_spending(AT_DAY, AT_DAY) == [
        Spending(AT_DAY, "claude", 70, 7),
        Spending(AT_DAY, "codex", 30, 2),
    ]


def test_a_refused_write_spends_nothing(store: Store) -> None:
    zombie = begun(store)
    store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 2, dead=zombie.token)
    with pytest.raises(Fenced):
        store.leases.write_change(
            zombie, RunChange(AT + 3, (Fact("x"),), status=RUNNING._replace(spent=spent(100, 10)))
        )
    assert sums(store) == ((0, 0), (0, 0))


def test_the_days_equal_the_runs_over_crashes_and_resumes(store: Store) -> None:
    for run_id in ("run-1", "run-2"):
        lease = begun(store, run_id)
        store.leases.write_change(lease, RunChange(AT + 2, (Fact("x"),), status=RUNNING._replace(spent=spent(100, 10))))
        lease, run = store.leases.claim(run_id, owner("worker-2"), LEASE_MS, AT + 3, dead=lease.token)  # a crash
        assert run.status.spent.usd_micros == 100
        failed = run.status._replace(state=RunState.FAILED, failure=Failure.CRASHED, phase=None, spent=spent(160, 12))
        store.leases.write_change(lease, RunChange(AT + DAY, (Fact("run.failed"),), status=failed))
        lease = claimed(store, run_id, "worker-3")  # resumed
        again = RUNNING._replace(attempt=3, spent=spent(200, 20), state=RunState.SUCCEEDED, phase=None)
        store.leases.write_change(lease, RunChange(AT + 2 * DAY, (Fact("run.succeeded"),), status=again))
    days, runs = sums(store)
    assert days == runs == (400, 40)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_was_spent_before_days_were_counted_is_not_lost(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = str(tmp_path / "state.sqlite")
    driver = _driver(file if backend == "sqlite" else request.getfixturevalue("postgres_url"), create=True)
    schema.migrate(driver, AT, upto=6)
    store = Store(driver)
    repository = {"id": "r", "path": "/srv", "next_number": 3, "created_at": AT}
    insert(store, "repositories", **repository)
    for number, usd_micros in ((1, 40), (2, 2), (3, 0)):
        life = RunStatus(spent=Spent(usd_micros=usd_micros, tokens_input=usd_micros), agent="claude")
        run = Run(f"run-{number}", number, "r", "x", None, Spec("p", "/srv"), life, None, 0, "", AT, AT)
        unknown = {"to", "usd_estimated", "windows", "review_round", "rounds_from", "tree"}  # no column, or a later one
        insert(store, "runs", **{name: one for name, one in rows.run_values(run, "").items() if name not in unknown})
    schema.migrate(driver, AT)
    assert ReportQueries(store).list_spending("", "9") == [Spending(AT_DAY, "claude", 42, 42)]
    driver.close()


def test_the_newest_events_are_cut_and_have_no_talk_among_them(store: Store) -> None:
    store.journal.append(Fact("build.finished", {"text": "x" * 5_000}), AT, "ada")
    lease = begun(store)
    store.leases.write_change(
        lease, RunChange(AT + 5, (Fact("agent.message", {"text": "hello"}), Fact("turn.started")))
    )
    found = ReportQueries(store).list_newest_events(3)
    assert [one.kind for one in found] == ["turn.started", "run.claimed", "run.created"]
    last = ReportQueries(store).list_newest_events(10)[-1]
    assert (last.kind, last.actor, last.at, len(last.data)) == ("build.finished", "ada", AT, 400)


def test_open_calls_can_be_looked_for_among_the_newest(store: Store) -> None:
    lease = begun(store)
    for number in range(9):
        wanted = intent(f"call-{number}", key=f"key-{number}")
        asked = Admission(Decision.ASK if number % 3 else Decision.ALLOW, "why")
        store.ledger.admit(lease, wanted, lambda *_, answer=asked: answer, (1, 1), AT + number)
    assert [call.id for call in store.calls.list_asked("run-1")] == [
        "call-1",
        "call-2",
        "call-4",
        "call-5",
        "call-7",
        "call-8",
    ]
    assert [call.id for call in store.calls.list_asked("run-1", 4)] == ["call-5", "call-7", "call-8"]
    assert [call.id for call in store.calls.list_open("run-1", 4)] == ["call-6"]
    assert [call.id for call in store.calls.list_open("run-1", 100)] == ["call-0", "call-3", "call-6"]
    assert store.calls.list_forced("run-1", 4) == []


# --- cost ----------------------------------------------------------------------------------------------------

_BOUNDED = {
    "report_runs": ("runs_state",),
    "report_waiting": ("runs_waiting",),
    "report_failed": ("runs_ended",),
    "report_count": ("runs_state", "runs_agent_state"),
    "report_items": ("work_items_status",),
    "report_dead": ("work_items_dead",),
    "report_kinds": ("work_items_next_of_kind",),
    "report_newest_events": ("events_timeline",),
    "report_newest_learnings": ("case_entries_learnings",),
    "report_learnings": ("case_entries_learnings",),
    "report_finished": ("runs_finished",),
    "report_alive": ("runs_state",),
    "report_outlived": ("runs_finished",),
    "report_moves": ("events_timeline",),
}


@pytest.mark.parametrize("name", _BOUNDED)
def test_a_look_up_reads_its_index_in_order(tmp_path: Path, name: str) -> None:
    """SQLite says so itself: no table is walked through, and nothing is sorted."""
    place = str(tmp_path / "state.sqlite")
    migrate(place)
    store = open_store(place, create=False)
    driver: Any = store.driver
    sql, picked = driver._sql[name]
    values = dict.fromkeys(
        queries.use_question_marks(queries.expand_query(queries.load_queries(driver.backend)[name]))[1], 1
    )
    plan = " | ".join(row[3] for row in driver._connection.execute(f"EXPLAIN QUERY PLAN {sql}", picked(values)))
    store.close()
    assert any(f"INDEX {index}" in plan for index in _BOUNDED[name]), plan
    assert "SCAN runs" not in plan.replace("SCAN runs USING", ""), plan
    assert "TEMP B-TREE" not in plan, plan
