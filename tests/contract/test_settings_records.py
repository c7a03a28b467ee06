"""Records of the files that a person owns: changed by many processes at once, together with their events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jackline.domain.events import Fact
from jackline.store.models import JOURNAL, TimelineQuery
from jackline.store.store import Store

TIMES = 8


def test_a_record_that_is_not_there_is_empty(store: Store) -> None:
    assert store.settings.read("host:/home") == {}


def test_no_change_and_no_event_is_lost_among_many(opened: Callable[..., Store]) -> None:
    def count(record: dict[str, Any]) -> Iterator[Fact]:
        record["times"] = record.get("times", 0) + 1
        yield Fact("jackline.counted", {"times": record["times"]})

    def work(_number: int) -> None:
        one = opened()
        for _ in range(TIMES):
            one.settings.update("host:/home", count, 1, "person")

    with ThreadPoolExecutor(TIMES) as pool:
        list(pool.map(work, range(TIMES)))
    found = opened()
    assert found.settings.read("host:/home") == {"times": TIMES * TIMES}
    events = found.journal.list_timeline(TimelineQuery(stream=JOURNAL, limit=TIMES * TIMES))
    assert sorted(event.data for event in events) == sorted(f'{{"times":{n + 1}}}' for n in range(TIMES * TIMES))


def test_a_change_that_fails_writes_nothing(store: Store) -> None:
    def fail(record: dict[str, Any]) -> Iterator[Fact]:
        record["times"] = 1
        yield Fact("jackline.counted")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        store.settings.update("host:/home", fail, 1, "person")
    assert store.settings.read("host:/home") == {}
    assert store.journal.list_timeline(TimelineQuery(stream=JOURNAL, limit=1)) == []
