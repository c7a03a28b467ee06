"""The journal: append an event, read the timeline of all events, follow it. It prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app.json_texts import value_of
from jackline.app.texts import named
from jackline.domain import journal
from jackline.domain.events import NOTHING, Fact
from jackline.errors import NoEvent, NoHome, UsageError
from jackline.store.contract import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.home import Home
    from jackline.domain.events import Event

OVERLAP_MS = 120_000  # an event may be committed so late, or its host's clock be so slow
REMEMBERED = 10_000  # events of that time that are remembered; with more the time is shorter
LONGEST_TEXT = 1_000
_PAGE = 500

Cursor = tuple[int, str, int]


def append(
    home: Home, kind: str, payload: Mapping[str, Any] = NOTHING, actor: str = "", item: str | None = None
) -> Event:
    """Append an event to the journal or to the stream of a work item."""
    import os

    from jackline.app import who

    actor = actor or who.actor(os.environ)
    if wrong := journal.wrong_kind(kind) or who.find_actor_problem(actor) or journal.wrong_payload(payload):
        raise UsageError(wrong)
    event = home.store(create=True).append_event(Fact(kind, payload), clock.wall_ms(), actor, item)
    home.notify_change()
    return event


def payload_of(text: str) -> dict[str, Any]:
    """Parse a text as a JSON object."""
    found = value_of(text, "the payload", '{"build": 7}')
    if not isinstance(found, dict):
        raise UsageError("the payload must be a JSON object, such as '{\"build\": 7}'")
    return found


def timeline(home: Home, query: TimelineQuery) -> list[Event]:
    """Events of all streams by time; events of one stream by sequence."""
    if len(query.text) > LONGEST_TEXT:
        raise UsageError(f"the text to search for has more than {LONGEST_TEXT} characters")
    try:
        return [] if home.is_new else home.store().timeline(query)
    except NoHome:  # another process is creating it
        return []


def event(home: Home, name: str) -> Event:
    """Find an event by its name, `STREAM#SEQ`."""
    found = journal.event_id(name)
    events = [] if found is None or home.is_new else home.store().events(found.stream, found.seq - 1, 1)
    if found is None or not events or events[0].seq != found.seq:
        raise NoEvent(named(name))
    return events[0]


def place_of(event: Event) -> Cursor:
    """The position of an event in the timeline."""
    return event.at, event.stream, event.seq


def follow(home: Home, query: TimelineQuery, shown: int) -> Iterator[list[Event]]:
    """Yield the last `shown` events, then new events forever; an empty list means: wait before the next item."""
    newest = query._replace(newest_first=True, limit=shown)
    return _follow_stream(home, newest) if query.stream else _follow_all(home, newest)


def _follow_stream(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """Follow one stream by sequence, in which no event is late."""
    last = timeline(home, TimelineQuery(stream=newest.stream, whole=newest.whole, limit=1))
    seq = last[0].seq if last else 0
    yield timeline(home, newest._replace(before=(0, newest.stream, seq + 1)))[::-1]
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        events = timeline(home, query._replace(after=(0, newest.stream, seq)))
        seq = events[-1].seq if events else seq
        yield events


def _follow_all(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """Follow by time, with an overlap: a late commit or a slow clock puts an event before events already shown."""
    window = _Window(_read_newest_time(home))
    # Existing events are not new; one more than is remembered shows where the window begins.
    window.select_new(timeline(home, newest._replace(since=window.begin[0], limit=REMEMBERED + 1)))
    shown = timeline(home, newest)[::-1]
    window.select_new(shown)
    yield shown
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        end = _read_newest_time(home)  # before reading: events written meanwhile are still in the next window
        after: Cursor | None = window.begin
        while after is not None:
            events = timeline(home, query._replace(after=after))
            after = place_of(events[-1]) if len(events) == _PAGE else None
            if fresh := window.select_new(events):
                yield fresh
        window.move(end)
        yield []


def _read_newest_time(home: Home) -> int:
    """The time of the newest event, but not later than our clock."""
    newest = timeline(home, TimelineQuery(limit=1))
    return min(newest[0].at, clock.wall_ms()) if newest else 0


class _Window:
    """Remembers the events already seen since a moving start."""

    def __init__(self, now: int) -> None:
        self.begin: Cursor = (now - OVERLAP_MS, "", 0)
        self._seen: set[Cursor] = set()

    def select_new(self, events: list[Event]) -> list[Event]:
        """Return the events not seen before, and remember them."""
        found = [one for one in events if place_of(one) not in self._seen]
        self._seen.update(place for place in map(place_of, found) if place > self.begin)
        if len(self._seen) > REMEMBERED:
            kept = sorted(self._seen)
            self.begin = kept[-REMEMBERED - 1]
            self._seen = set(kept[-REMEMBERED:])
        return found

    def move(self, now: int) -> None:
        """Move the start, and forget older events."""
        self.begin = max(self.begin, (now - OVERLAP_MS, "", 0))
        self._seen = {place for place in self._seen if place > self.begin}
