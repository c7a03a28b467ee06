"""Eight processes add cases, events and work items at once: every number is used once, nothing is lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from jackline.domain.events import Event, broken_at
from jackline.errors import Refused
from jackline.features.cases import case_model
from jackline.features.cases.case_model import EntryKind, NewCase
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.work import work_item
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, ItemQuery, NewItem
from jackline.store.models import JOURNAL
from jackline.store.store import Store
from tests.support.stores import AT, HERE, LEASE_MS

PROCESSES = 8
CASE = "20231114-221320-a-case"
_PAGE = 1000


def test_eight_processes_add_hypotheses_events_and_items(store: Store, database: str, start: Any) -> None:
    _fill(store, database, start, 5)


@pytest.mark.full
def test_eight_processes_add_a_thousand_of_each(store: Store, database: str, start: Any) -> None:
    _fill(store, database, start, 1000)


def _fill(store: Store, database: str, start: Any, each: int) -> None:
    new = NewCase(CASE, "repository", HERE, "ada", "find it", case_model.Problem())
    assert CaseNotebook(store).start(new, case_model.build_active_key("repository", "ada", None), AT).id == CASE
    programs = [start("fill", database, str(number), CASE, str(each)) for number in range(PROCESSES)]
    assert [program.hear() for program in programs] == ["ready"] * PROCESSES
    for program in programs:
        program.send_order()
    told = [program.hear() for program in programs]
    _hypotheses_are_whole(store, told, PROCESSES * each)
    _journal_is_whole(store, told, PROCESSES * each)
    _items_are_whole(store, told, PROCESSES * each)
    assert store.verify.check_all() == []


def _hypotheses_are_whole(store: Store, told: list[Any], count: int) -> None:
    """H001 to the last without a gap or a double, each with the text of who was given it."""
    given = {number: text for one in told for number, text in one["hypotheses"]}
    assert sorted(number for one in told for number, _ in one["hypotheses"]) == list(range(1, count + 1))
    entries = Cases(store).list_entries(CASE, EntryKind.HYPOTHESIS)
    assert {entry.number: entry.text for entry in entries} == given
    assert len({entry.id for entry in entries}) == len(entries) == count
    found = Cases(store).get(CASE)
    assert found is not None
    assert found.counts[EntryKind.HYPOTHESIS] == count
    events = _whole(store, case_model.get_case_stream(CASE))
    assert (found.event_seq, found.chain_head) == (len(events), events[-1].hash)
    assert len(events) == count + 1


def _journal_is_whole(store: Store, told: list[Any], count: int) -> None:
    events = _whole(store, JOURNAL)
    assert sorted(seq for one in told for seq in one["events"]) == list(range(1, count + 1))
    assert [event.seq for event in events] == list(range(1, count + 1))
    assert len({event.data for event in events}) == count


def _items_are_whole(store: Store, told: list[Any], count: int) -> None:
    """Each item is there once, and was claimed once, by one of them."""
    assert len({item for one in told for item in one["items"]}) == count
    claimed = [item for one in told for item in one["claimed"]]
    assert len(claimed) == len(set(claimed)) == count
    items = list(_items(store))
    assert {item.id for item in items} == set(claimed)
    for item in items:
        assert (item.status, item.attempts, item.token, item.event_seq) == ("done", 1, 1, 3)
    for item in items[:: max(1, count // 50)]:
        events = _whole(store, work_item.get_item_stream(item.id))
        assert [event.kind for event in events] == ["work.created", "work.claimed", "work.resolved"]
        assert item.chain_head == events[-1].hash


def _items(store: Store) -> Iterator[work_item.WorkItem]:
    before = None
    while page := WorkItems(store).list_page(ItemQuery(before=before, limit=_PAGE)):
        yield from page
        before = (page[-1].created_at, page[-1].id)


def _whole(store: Store, stream: str) -> list[Event]:
    """Every event of a stream, whose chain must hold."""
    events: list[Event] = []
    while page := store.records.list_events(stream, events[-1].seq if events else 0, _PAGE):
        events += page
    assert broken_at(events) is None
    return events


def test_processes_that_claim_next_share_the_queue(store: Store, database: str, start: Any) -> None:
    for number in range(40):
        WorkQueue(store).enqueue(NewItem(f"i{number}", "k", priority=number % 3), AT, "host")
    programs = [start("drain", database, f"w{number}") for number in range(PROCESSES)]
    assert [program.hear() for program in programs] == ["ready"] * PROCESSES
    for program in programs:
        program.send_order()
    got = [item for program in programs for item in program.hear()["claimed"]]
    assert sorted(got) == sorted(f"i{number}" for number in range(40))
    assert WorkItems(store).count_open() == []


STATEMENTS = 16  # of a claim and a resolution, and a few more than there are


def test_killed_at_any_moment_an_item_is_not_lost_and_not_done_twice(store: Store, database: str, start: Any) -> None:
    for at in range(1, STATEMENTS + 1):
        WorkQueue(store).enqueue(NewItem(f"i{at}", f"k{at}", max_attempts=1000), AT, "host")
    codes = start("killed", database, str(STATEMENTS)).hear()
    assert (codes[0], codes[-1], set(codes)) == (-9, 0, {-9, 0})
    left = [_whole_item(store, f"i{at}") for at in range(1, STATEMENTS + 1)]
    assert list(dict.fromkeys(left)) == ["pending", "in_flight", "done"]  # the later it is killed, the more is done
    assert {status for code, status in zip(codes, left, strict=True) if code == 0} == {"done"}
    assert store.verify.check_all() == []
    while item := WorkQueue(store).claim_next((), "heir", LEASE_MS, AT):
        WorkQueue(store).resolve(Hold(item.id, "heir", item.token), "succeed", AT)
    assert {_whole_item(store, f"i{at}") for at in range(1, STATEMENTS + 1)} == {"done"}


def _whole_item(store: Store, item_id: str) -> str:
    """Its status, which must be what its events say."""
    item = WorkItems(store).get(item_id)
    assert item is not None
    kinds = [event.kind for event in _whole(store, work_item.get_item_stream(item_id))]
    assert kinds.count("work.claimed") == item.attempts == item.token
    assert kinds.count("work.resolved") == int(item.status == "done")
    assert (kinds[-1], item.event_seq) == (_LAST[item.status], len(kinds))
    return str(item.status)


_LAST = {"pending": "work.created", "in_flight": "work.claimed", "done": "work.resolved"}


def test_to_end_an_item_and_to_give_it_back_race_to_one_outcome(opened: Callable[..., Store]) -> None:
    ending, releasing = opened(), opened()
    for number in range(15):
        WorkQueue(ending).enqueue(NewItem(f"i{number}", "k"), AT, "host")
        hold = Hold(f"i{number}", "one", WorkQueue(ending).claim(f"i{number}", "one", LEASE_MS, AT).token)
        won = _winners(
            partial(WorkQueue(ending).resolve, hold, "succeed", AT), partial(WorkQueue(releasing).release, hold, AT)
        )
        assert [WorkItems(ending).get(hold.item_id)] == won
        _whole(ending, work_item.get_item_stream(hold.item_id))


def _winners(*writes: Callable[[], work_item.WorkItem]) -> list[work_item.WorkItem]:
    """Do both at the same moment; what was written by those who were not refused."""
    won: list[work_item.WorkItem] = []
    begin = threading.Barrier(len(writes))

    def act(write: Callable[[], work_item.WorkItem]) -> None:
        begin.wait()
        with contextlib.suppress(Refused):
            won.append(write())

    threads = [threading.Thread(target=act, args=(write,)) for write in writes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won
