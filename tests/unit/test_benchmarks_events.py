"""The databases that the benchmark of many events is measured on are as valid as what the store writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import many_events
from jackline.domain.states import WorkStatus
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.work_item import ItemQuery
from jackline.store.models import TimelineQuery
from jackline.store.open import open_store
from tests.support.stores import AT


@pytest.mark.parametrize("count", [1, 7, 1_000])
def test_a_database_of_many_events_is_in_order(tmp_path: Path, count: int) -> None:
    path = str(tmp_path / "state.sqlite")
    many_events.build_sqlite(path, count, AT)
    store = open_store(path, create=False)
    assert store.verify.check_all() == []
    assert store.admin.get_status().counts["events"] == count
    newest = store.journal.list_timeline(TimelineQuery(limit=1))[0]
    assert newest.at == AT + (count - 1) * many_events.APART_MS
    pending = WorkItems(store).list_page(ItemQuery(statuses=(str(WorkStatus.PENDING),)))
    assert len(pending) == min(25, (count // 2 + 9) // 10)
    store.close()


@pytest.mark.full
@pytest.mark.postgres
def test_the_same_in_postgresql(postgres_url: str) -> None:
    many_events.build_postgres(postgres_url, 1_000, AT)
    store = open_store(postgres_url, create=False)
    assert store.verify.check_all() == []
    assert store.admin.get_status().counts["events"] == 1_000
    store.close()
