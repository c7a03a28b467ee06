"""Following the timeline: every event once, however late it comes; memory and reading stay bounded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline import clock
from jackline.app.home import Home, open_home
from jackline.domain.events import Event, Fact
from jackline.errors import UsageError
from jackline.features.journal import journal_events
from jackline.features.journal.journal_events import (
    EventId,
    StreamOwner,
    find_owner,
    find_payload_problem,
    parse_event_id,
)
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import NewItem
from jackline.store.models import TimelineQuery

NOW = 1_800_000_000_000


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with open_home(str(tmp_path / "home"), {}) as opened:
        yield opened


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Our own clock, in the test's hand."""
    held = [NOW]
    monkeypatch.setattr(clock, "wall_ms", lambda: held[0])
    return held


def add(home: Home, kind: str, at: int, item: str | None = None) -> None:
    home.store(create=True).journal.append(Fact(kind), at, "ada", item)


def rest(following: Iterator[list[Event]]) -> list[str]:
    """What is new until there is nothing more for now."""
    found: list[str] = []
    while events := next(following):
        found += [event.kind for event in events]
    return found


def test_every_event_is_told_once_in_whatever_order_it_comes(home: Home, now: list[int]) -> None:
    WorkQueue(home.store(create=True)).enqueue(NewItem("item", "mail"), NOW - 1_000, "ada")
    following = journal_events.follow_timeline(home, TimelineQuery(), 10)
    assert [event.kind for event in next(following)] == ["work.created"]
    source = random.Random(5)
    told: list[str] = []
    for number in range(300):
        now[0] += source.randrange(2_000)
        add(
            home,
            f"kind.{number}",
            now[0] - source.randrange(journal_events.OVERLAP_MS - 5_000),
            source.choice([None, "item"]),
        )
        if source.random() < 0.3:
            told += rest(following)
    told += rest(following)
    assert sorted(told) == sorted(f"kind.{number}" for number in range(300))
    assert rest(following) == []


def test_what_stood_there_before_and_was_not_wanted_is_not_told_later(home: Home, now: list[int]) -> None:
    for number in range(30):
        add(home, f"kind.{number}", NOW - 30 + number)
    following = journal_events.follow_timeline(home, TimelineQuery(), 2)
    assert [event.kind for event in next(following)] == ["kind.28", "kind.29"]
    assert rest(following) == []
    add(home, "late", NOW - 20)
    assert rest(following) == ["late"]


def test_more_than_is_remembered_makes_the_look_back_shorter_and_tells_nothing_twice(
    home: Home, now: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_events, "REMEMBERED", 10)
    monkeypatch.setattr(journal_events, "_PAGE", 7)
    for number in range(25):
        add(home, f"old.{number}", NOW - 100 + number)
    following = journal_events.follow_timeline(home, TimelineQuery(), 3)
    assert [event.kind for event in next(following)] == ["old.22", "old.23", "old.24"]
    assert rest(following) == []
    for number in range(40):
        add(home, f"new.{number}", NOW + number)
    assert rest(following) == [f"new.{number}" for number in range(40)]
    add(home, "late", NOW + 35)
    assert rest(following) == ["late"]
    assert rest(following) == []


def test_events_of_the_same_moment_are_told_apart(home: Home, now: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_events, "REMEMBERED", 5)
    for number in range(9):
        add(home, f"old.{number}", NOW)
    following = journal_events.follow_timeline(home, TimelineQuery(), 1)
    assert len(next(following)) == 1
    assert rest(following) == []
    for number in range(9):
        add(home, f"new.{number}", NOW)
    assert len(rest(following)) == 9


@pytest.mark.parametrize("off", [-3_600_000, 3_600_000])
def test_a_clock_of_ours_that_is_wrong_misses_nothing(home: Home, now: list[int], off: int) -> None:
    add(home, "first", NOW)
    now[0] += off
    following = journal_events.follow_timeline(home, TimelineQuery(), 5)
    assert [event.kind for event in next(following)] == ["first"]
    for number in range(5):
        now[0] += 60_000
        add(home, f"kind.{number}", NOW + number * 60_000)
        assert rest(following) == [f"kind.{number}"]


def test_what_is_looked_at_again_does_not_grow(home: Home, now: list[int]) -> None:
    """Also where nothing of what goes by is wanted."""
    following = journal_events.follow_timeline(home, TimelineQuery(kind="wanted"), 5)
    next(following)
    for _ in range(10):
        now[0] += journal_events.OVERLAP_MS
        add(home, "other", now[0])
        assert rest(following) == []
    begin = following.gi_frame.f_locals["window"].begin  # type: ignore[attr-defined]
    assert begin[0] == now[0] - journal_events.OVERLAP_MS


def test_one_stream_is_followed_by_its_sequence(home: Home, now: list[int]) -> None:
    add(home, "first", NOW)
    following = journal_events.follow_timeline(home, TimelineQuery(stream="journal:", whole=True), 5)
    assert [event.kind for event in next(following)] == ["first"]
    add(home, "long.ago", 1)
    add(home, "long.after", NOW * 2)
    add(home, "now", NOW)
    assert rest(following) == ["long.ago", "long.after", "now"]
    assert rest(following) == []


def test_an_empty_stream_is_followed_from_its_first_event(home: Home, now: list[int]) -> None:
    following = journal_events.follow_timeline(home, TimelineQuery(stream="journal:"), 5)
    assert next(following) == []
    add(home, "first", NOW)
    assert rest(following) == ["first"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("journal:#12", EventId("journal:", 12)),
        ("work:a#b#3", EventId("work:a#b", 3)),
        ("run#1", EventId("run", 1)),
        ("#1", None),
        ("journal:", None),
        ("journal:#", None),
        ("journal:#x", None),
        ("journal:#²", None),
        ("journal:#" + "9" * 19, None),
    ],
)
def test_the_name_of_an_event_is_read_as_it_is_printed(text: str, found: EventId | None) -> None:
    assert parse_event_id(text) == found
    assert found is None or str(found) == text


def test_whose_a_stream_is() -> None:
    assert find_owner("work:a:b") == StreamOwner(work_item_id="a:b")
    assert find_owner("case:x") == StreamOwner(case="x")
    assert find_owner("20260101-abc") == StreamOwner(run="20260101-abc")
    assert find_owner("journal:") == StreamOwner()


def test_a_payload_of_a_program_is_judged_too(home: Home) -> None:
    nested: dict[str, object] = {}
    for _ in range(5_000):
        nested = {"a": nested}
    assert "nested" in find_payload_problem(nested)
    with pytest.raises(UsageError, match="nested"):
        journal_events.append_event(home, "note.made", nested)
    assert home.is_new
