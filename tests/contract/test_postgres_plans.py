"""What PostgreSQL does with the questions of a dashboard and of a service.

In a big table it must not plan each question of a dashboard anew, and it must count the batches of the queue once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jackline.domain.states import WorkStatus
from jackline.features.reports.report_queries import ReportQueries
from jackline.store.open import open_store
from jackline.store.queries import expand_query, load_queries, use_percent_parameters
from jackline.store.store import Store

pytestmark = pytest.mark.postgres

ASKED = 20  # psycopg prepares a statement from its fifth use on, and the server thinks about a plan to keep after five
ITEMS = """
INSERT INTO work_items (
    id, kind, payload, status, notes, priority, attempts, max_attempts, token, question, answer, dead, event_seq,
    chain_head, created_at, updated_at
)
SELECT 'mail-' || one, 'mail', '{}', CASE WHEN one < 20000 THEN 'done' ELSE 'pending' END, '', 0, 0, 5, 0, '', '', 0, 0,
    '', one, one
FROM generate_series(1, 20025) AS one
"""


@pytest.fixture
def filled(postgres_database: str) -> Iterator[Store]:
    """Many items that are done, and a few that are not."""
    store = open_store(postgres_database, create=False)
    connection(store).execute(ITEMS)
    connection(store).execute("VACUUM ANALYZE work_items")
    yield store
    store.close()


def connection(store: Store) -> Any:
    return store.driver._connection  # type: ignore[attr-defined]


def planned_anew(store: Store, words: str) -> int:
    """How often the statement with these words was planned for the sake of one execution."""
    sql = "SELECT custom_plans FROM pg_prepared_statements WHERE statement LIKE %s"
    ((times,),) = connection(store).execute(sql, (f"%{words}%",)).fetchall()
    return int(times)


def test_items_of_a_status_are_planned_once(filled: Store) -> None:
    for _ in range(ASKED):
        assert len(ReportQueries(filled).list_items_in(WorkStatus.PENDING, 11)) == 11
    assert planned_anew(filled, "ORDER BY created_at, id LIMIT 11") == 5


def test_the_kinds_of_a_status_are_planned_once(filled: Store) -> None:
    for _ in range(ASKED):
        assert ReportQueries(filled).count_kinds(WorkStatus.PENDING, 100, 11) == [("mail", 26)]
    assert planned_anew(filled, "WITH RECURSIVE kinds") == 5


def test_a_limit_is_kept_whichever_it_is(filled: Store) -> None:
    for limit in (3, 0, 30, 3):
        assert len(ReportQueries(filled).list_items_in(WorkStatus.PENDING, limit)) == min(limit, 26)


def test_the_batches_of_the_queue_are_counted_once_and_not_for_each_run(filled: Store) -> None:
    sql = use_percent_parameters(expand_query(load_queries("postgres")["startable_runs"]), {})
    names = ("running", "queued", "waiting", "succeeded", "retry", "limited", "budget")
    values = {**dict.fromkeys(names, "queued"), "at": 0, "limit": 10}
    plan = "\n".join(row[0] for row in connection(filled).execute(f"EXPLAIN {sql}", values).fetchall())
    assert "Aggregate" in plan
    assert "SubPlan" not in plan, plan
