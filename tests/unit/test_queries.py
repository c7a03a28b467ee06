"""The named queries: shared by both backends but for a pinned few, and free of decisions."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.domain.states import CallClass, CallState, Decision, Phase, RunState
from jackline.store import queries, sqlite_file
from jackline.store.models import RunQuery
from jackline.store.open import migrate
from jackline.store.runs import build_listing

BACKENDS = ("sqlite", "postgres")


def test_only_these_queries_differ() -> None:
    assert sorted(queries.load_overrides("postgres")) == ["has_schema", "notify_services", "size"]
    assert sorted(queries.load_overrides("sqlite")) == ["add_event", "has_schema", "size"]
    assert not set(queries.load_shared()) & {"has_schema", "size"}


def test_no_query_names_a_state() -> None:
    """The transition table decides; SQL compares with what it is handed."""
    words = {*RunState, *CallState, *CallClass, *Decision, *Phase}
    for name, sql in queries.load_shared().items():
        if not re.search(r"\b(runs|calls)\b", sql):  # other tables have states of their own, in partial indexes
            continue
        assert not set(re.findall(r"'(\w+)'", queries.expand_query(sql))) & words, name


def test_parameters_are_spelled_for_psycopg() -> None:
    sql = "SELECT ':not' , :name, x::text FROM t WHERE a = :a_1 AND b % 2 = :clock_now"
    spelled = queries.use_percent_parameters(sql, {"clock_now": "now()"})
    assert spelled == "SELECT ':not' , %(name)s, x::text FROM t WHERE a = %(a_1)s AND b %% 2 = now()"


def test_records_stand_for_their_columns() -> None:
    text = "-- what\n\n-- name: a\n-- why\nSELECT {checkpoint}\n-- name: b\nX ({:checkpoint}) Y {checkpoint=}\n"
    found = {name: queries.expand_query(sql) for name, sql in queries.parse_queries(text).items()}
    assert found["a"] == "SELECT run_id, step, kind, life, cursor, at"
    assert found["b"].startswith("X (:run_id, :step, :kind, :life, :cursor, :at) Y run_id = excluded.run_id,")


def test_every_column_of_text_is_compared_by_its_bytes() -> None:
    script = "CREATE TABLE t (\n    id TEXT NOT NULL,\n    at BIGINT\n);\n-- TEXT\n"
    assert queries.collate_by_bytes(script) == script.replace("id TEXT", 'id TEXT COLLATE "C"')


def test_a_trigger_is_one_statement() -> None:
    script = "-- first\nCREATE TABLE a (x);\n\nCREATE TRIGGER t BEFORE UPDATE ON a\nBEGIN\n    SELECT 1;\nEND;\n"
    first, second = sqlite_file.split_statements(script)
    assert first == "CREATE TABLE a (x);"
    assert second.startswith("CREATE TRIGGER")
    assert second.endswith("END;")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = str(tmp_path / "jackline.db")
    migrate(path)
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def _plan(connection: sqlite3.Connection, sql: str, values: dict[str, object]) -> str:
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (RunQuery(), "runs_newest"),
        (RunQuery(since=1), "runs_newest (created_at>?)"),
        (RunQuery(before=(1, "x")), "runs_newest ((created_at,id)<(?,?))"),
        (RunQuery(agent="a"), "runs_agent (agent=?)"),
        (RunQuery(task="a"), "runs_task (task=?)"),
        (RunQuery(repository="a"), "runs_repository (repository=?)"),
        (RunQuery(states=("queued", "running")), "runs_state (state=?)"),
        (RunQuery(agent="a", states=("queued",)), "runs_agent_state (agent=? AND state=?)"),
        (RunQuery(task="a", states=("queued",)), "runs_task_state (task=? AND state=?)"),
        (RunQuery(repository="a", states=("queued",)), "runs_repository_state (repository=? AND state=?)"),
        (RunQuery(repository="a", states=("queued",), since=1), "(repository=? AND state=? AND created_at>?)"),
        (RunQuery(session="s"), "sessions_session (session=?)"),
        (RunQuery(session="s", agent="a", states=("failed",)), "sessions_session (session=?)"),
    ],
)
def test_a_list_reads_one_index_and_never_all_runs(connection: sqlite3.Connection, query: RunQuery, index: str) -> None:
    agents = ("a", "a@work") if query.agent else ()
    plan = _plan(connection, *build_listing(query, agents))
    assert index in plan
    assert plan.count(index) >= max(1, len(agents))
    assert "SCAN runs\n" not in plan + "\n"


@pytest.mark.parametrize(
    "name", ["find_prefix", "find_number", "next_agent", "open_calls", "some_events", "all_receipts"]
)
def test_what_is_asked_often_has_an_index(connection: sqlite3.Connection, name: str) -> None:
    sql = queries.expand_query(queries.load_queries("sqlite")[name])
    values = dict.fromkeys(re.findall(r":(\w+)", sql), "x")
    assert "SCAN" not in _plan(connection, sql, dict(values))


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("get_call", "PRIMARY KEY (run_id=? AND id=?)"),
        ("all_calls", "PRIMARY KEY (run_id=?)"),
        ("count_of_key", "calls_key (run_id=? AND key=?)"),
        ("calls_of_key", "calls_key (run_id=? AND key=?)"),
        ("last_denial", "calls_key (run_id=? AND key=?)"),
        ("same_target", "calls_target (run_id=? AND target=?)"),
        ("receipt_of_key", "PRIMARY KEY (run_id=? AND key=?)"),
    ],
)
def test_the_gate_reads_a_few_calls_however_many_there_are(
    connection: sqlite3.Connection, name: str, index: str
) -> None:
    """An index of some rows only is used by a query that asks for such rows in the same words."""
    sql = queries.expand_query(queries.load_queries("sqlite")[name])
    assert index in _plan(connection, sql, dict.fromkeys(re.findall(r":(\w+)", sql), "x"))
