"""The journal for programs: append an event, read the timeline, follow it. It prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app.json_texts import value_of
from jackline.app.texts import named
from jackline.domain import journal
from jackline.domain.events import NOTHING, Fact
from jackline.errors import NoEvent, NoHome, UsageError
from jackline.store.state_contract import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.home import Home
    from jackline.domain.events import Event

OVERLAP_MS = 120_000  # how late, or how far behind by its host's clock, an event may come and still be followed
REMEMBERED = 10_000  # events within that time; if there are more, it is shorter
LONGEST_TEXT = 1_000
_PAGE = 500

Cursor = tuple[int, str, int]


def append(
    home: Home, kind: str, payload: Mapping[str, Any] = NOTHING, actor: str = "", item: str | None = None
) -> Event:
    """Write an event into the journal, or into the stream of a work item."""
    import os

    from jackline.app import who

    actor = actor or who.actor(os.environ)
    if wrong := journal.wrong_kind(kind) or who.find_actor_problem(actor) or journal.wrong_payload(payload):
        raise UsageError(wrong)
    event = home.store(create=True).append_event(Fact(kind, payload), clock.wall_ms(), actor, item)
    home.notify_change()
    return event


def payload_of(text: str) -> dict[str, Any]:
    """The JSON object in a text."""
    found = value_of(text, "the payload", '{"build": 7}')
    if not isinstance(found, dict):
        raise UsageError("the payload must be a JSON object, such as '{\"build\": 7}'")
    return found


def timeline(home: Home, query: TimelineQuery) -> list[Event]:
    """Events by time, whose ever they are; of one stream by their sequence."""
    if len(query.text) > LONGEST_TEXT:
        raise UsageError(f"a text to search for has at most {LONGEST_TEXT} characters")
    try:
        return [] if home.is_new else home.store().timeline(query)
    except NoHome:  # it is being made at this very moment
        return []


def event(home: Home, name: str) -> Event:
    """One event by its name, `STREAM#SEQ`."""
    found = journal.event_id(name)
    events = [] if found is None or home.is_new else home.store().events(found.stream, found.seq - 1, 1)
    if found is None or not events or events[0].seq != found.seq:
        raise NoEvent(named(name))
    return events[0]


def place_of(event: Event) -> Cursor:
    """Where an event stands in the timeline."""
    return event.at, event.stream, event.seq


def follow(home: Home, query: TimelineQuery, shown: int) -> Iterator[list[Event]]:
    """The last events, as many as are to be shown, then for ever what is new; an empty list: wait, then go on."""
    newest = query._replace(newest_first=True, limit=shown)
    return _follow_stream(home, newest) if query.stream else _follow_all(home, newest)


def _follow_stream(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """By the sequence, in which nothing can come late."""
    last = timeline(home, TimelineQuery(stream=newest.stream, whole=newest.whole, limit=1))
    seq = last[0].seq if last else 0
    yield timeline(home, newest._replace(before=(0, newest.stream, seq + 1)))[::-1]
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        events = timeline(home, query._replace(after=(0, newest.stream, seq)))
        seq = events[-1].seq if events else seq
        yield events


def _follow_all(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """By time, with a look back: who commits late, or has a slow clock, writes before what was shown already."""
    window = _Window(_now(home))
    # What stands there already and is not to be shown; one more than is remembered tells where that begins.
    window.new(timeline(home, newest._replace(since=window.begin[0], limit=REMEMBERED + 1)))
    shown = timeline(home, newest)[::-1]
    window.new(shown)
    yield shown
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        end = _now(home)  # before looking: what is written meanwhile is not too old the next time
        after: Cursor | None = window.begin
        while after is not None:
            events = timeline(home, query._replace(after=after))
            after = place_of(events[-1]) if len(events) == _PAGE else None
            if fresh := window.new(events):
                yield fresh
        window.move(end)
        yield []


def _now(home: Home) -> int:
    """The time by which events are written: of a clock that is ahead of ours it is ours, of one behind it is theirs."""
    newest = timeline(home, TimelineQuery(limit=1))
    return min(newest[0].at, clock.wall_ms()) if newest else 0


class _Window:
    """What was shown of the last while; what is older than its beginning is not looked at again."""

    def __init__(self, now: int) -> None:
        self.begin: Cursor = (now - OVERLAP_MS, "", 0)
        self._seen: set[Cursor] = set()

    def new(self, events: list[Event]) -> list[Event]:
        """Those that were not seen yet; from now on they were."""
        found = [one for one in events if place_of(one) not in self._seen]
        self._seen.update(place for place in map(place_of, found) if place > self.begin)
        if len(self._seen) > REMEMBERED:
            kept = sorted(self._seen)
            self.begin = kept[-REMEMBERED - 1]
            self._seen = set(kept[-REMEMBERED:])
        return found

    def move(self, now: int) -> None:
        """Forget what is too old."""
        self.begin = max(self.begin, (now - OVERLAP_MS, "", 0))
        self._seen = {place for place in self._seen if place > self.begin}
