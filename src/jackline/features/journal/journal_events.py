"""The journal: checks and appends events of people and agents, reads the timeline of all events, and follows it.

It prints nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app.text_files import parse_json_text, shorten_name
from jackline.domain import events
from jackline.domain.events import NOTHING, Fact, canonical
from jackline.errors import NoEvent, NoHome, UsageError
from jackline.named import NamedTuple, stored_as
from jackline.store.models import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.home import Home
    from jackline.domain.events import Event


LONGEST_KIND = 100
LONGEST_PAYLOAD = 1_000_000  # characters of JSON; larger data belongs in a file

# The first words of jackline's own events, which others must not write.
RESERVED_WORDS = frozenset(
    {
        "agent", "attempt", "call", "cancel", "case", "check", "gate", "import", "jackline", "mcp", "notice",
        "probe", "receipt", "recovery", "replay", "retro", "run", "schedule", "session", "step", "stop", "trigger",
        "turn", "work",
    }
)  # fmt: skip
_KIND = r"[a-z][a-z0-9_.-]*"
_MOST_DIGITS = 18  # what both databases hold
OVERLAP_MS = 120_000  # an event may be committed so late, or its host's clock be so slow
REMEMBERED = 10_000  # events of that time that are remembered; with more the time is shorter
LONGEST_TEXT = 1_000
_PAGE = 500

Cursor = tuple[int, str, int]


class EventId(NamedTuple):
    """The name of an event: `STREAM#SEQ`."""

    stream: str
    seq: int

    def __str__(self) -> str:
        """As it is printed and parsed."""
        return f"{self.stream}#{self.seq}"


@stored_as("run work_item_id case")
class StreamOwner(NamedTuple):
    """The owner of a stream: a run, a work item or a case; none for the journal itself."""

    run: str | None = None
    work_item_id: str | None = None
    case: str | None = None


def parse_event_id(text: str) -> EventId | None:
    """Parse the name of an event; None if it is invalid."""
    stream, mark, digits = text.rpartition("#")
    well_formed = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return EventId(stream, int(digits)) if mark and stream and well_formed else None


def find_owner(stream: str) -> StreamOwner:
    """Find the owner of a stream."""
    kind, colon, name = stream.partition(":")
    if colon and kind == "work":
        return StreamOwner(work_item_id=name)
    if colon and kind == "case":
        return StreamOwner(case=name)
    return StreamOwner() if ":" in stream else StreamOwner(run=stream)


def find_kind_problem(kind: str) -> str:
    """Why an event cannot have this type; empty if it can."""
    if len(kind) > LONGEST_KIND or not re.fullmatch(_KIND, kind, re.ASCII):
        most = f"at most {LONGEST_KIND} characters"
        return f"an event type is words separated by dots, such as build.finished: a-z, 0-9, _ and -, {most}"
    first = kind.partition(".")[0]
    if first in RESERVED_WORDS:
        return f"only jackline writes events of type '{first}.…': choose another first word"
    return ""


def find_payload_problem(payload: Mapping[str, Any]) -> str:
    """Why a payload cannot be stored; empty if it can."""
    if wrong := events.find_json_problem(dict(payload)):
        return f"the payload {wrong}"
    if len(canonical(dict(payload))) > LONGEST_PAYLOAD:
        return f"the payload is longer than {LONGEST_PAYLOAD:,} characters: write a file and name the file in the event"
    return ""


def append_event(
    home: Home, kind: str, payload: Mapping[str, Any] = NOTHING, actor: str = "", item: str | None = None
) -> Event:
    """Append an event to the journal or to the stream of a work item."""
    import os

    from jackline.app import identity

    actor = actor or identity.read_actor(os.environ)
    if wrong := find_kind_problem(kind) or identity.find_actor_problem(actor) or find_payload_problem(payload):
        raise UsageError(wrong)
    event = home.store(create=True).journal.append(Fact(kind, payload), clock.wall_ms(), actor, item)
    home.notify_change()
    return event


def parse_payload(text: str) -> dict[str, Any]:
    """Parse a text as a JSON object."""
    found = parse_json_text(text, "the payload", '{"build": 7}')
    if not isinstance(found, dict):
        raise UsageError("the payload must be a JSON object, such as '{\"build\": 7}'")
    return found


def read_timeline(home: Home, query: TimelineQuery) -> list[Event]:
    """Events of all streams by time; events of one stream by sequence."""
    if len(query.text) > LONGEST_TEXT:
        raise UsageError(f"the text to search for has more than {LONGEST_TEXT} characters")
    try:
        return [] if home.is_new else home.store().journal.list_timeline(query)
    except NoHome:  # another process is creating it
        return []


def find_event(home: Home, name: str) -> Event:
    """Find an event by its name, `STREAM#SEQ`."""
    found = parse_event_id(name)
    events = [] if found is None or home.is_new else home.store().records.list_events(found.stream, found.seq - 1, 1)
    if found is None or not events or events[0].seq != found.seq:
        raise NoEvent(shorten_name(name))
    return events[0]


def get_cursor(event: Event) -> Cursor:
    """The position of an event in the timeline."""
    return event.at, event.stream, event.seq


def follow_timeline(home: Home, query: TimelineQuery, shown: int) -> Iterator[list[Event]]:
    """Yield the last `shown` events, then new events forever; an empty list means: wait before the next item."""
    newest = query._replace(newest_first=True, limit=shown)
    return _follow_stream(home, newest) if query.stream else _follow_all(home, newest)


def _follow_stream(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """Follow one stream by sequence, in which no event is late."""
    last = read_timeline(home, TimelineQuery(stream=newest.stream, whole=newest.whole, limit=1))
    seq = last[0].seq if last else 0
    yield read_timeline(home, newest._replace(before=(0, newest.stream, seq + 1)))[::-1]
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        events = read_timeline(home, query._replace(after=(0, newest.stream, seq)))
        seq = events[-1].seq if events else seq
        yield events


def _follow_all(home: Home, newest: TimelineQuery) -> Iterator[list[Event]]:
    """Follow by time, with an overlap: a late commit or a slow clock puts an event before events already shown."""
    window = _Window(_read_newest_time(home))
    # Existing events are not new; one more than is remembered shows where the window begins.
    window.select_new(read_timeline(home, newest._replace(since=window.begin[0], limit=REMEMBERED + 1)))
    shown = read_timeline(home, newest)[::-1]
    window.select_new(shown)
    yield shown
    query = newest._replace(newest_first=False, limit=_PAGE)
    while True:
        end = _read_newest_time(home)  # before reading: events written meanwhile are still in the next window
        after: Cursor | None = window.begin
        while after is not None:
            events = read_timeline(home, query._replace(after=after))
            after = get_cursor(events[-1]) if len(events) == _PAGE else None
            if fresh := window.select_new(events):
                yield fresh
        window.move(end)
        yield []


def _read_newest_time(home: Home) -> int:
    """The time of the newest event, but not later than our clock."""
    newest = read_timeline(home, TimelineQuery(limit=1))
    return min(newest[0].at, clock.wall_ms()) if newest else 0


class _Window:
    """Remembers the events already seen since a moving start."""

    def __init__(self, now: int) -> None:
        self.begin: Cursor = (now - OVERLAP_MS, "", 0)
        self._seen: set[Cursor] = set()

    def select_new(self, events: list[Event]) -> list[Event]:
        """Return the events not seen before, and remember them."""
        found = [one for one in events if get_cursor(one) not in self._seen]
        self._seen.update(place for place in map(get_cursor, found) if place > self.begin)
        if len(self._seen) > REMEMBERED:
            kept = sorted(self._seen)
            self.begin = kept[-REMEMBERED - 1]
            self._seen = set(kept[-REMEMBERED:])
        return found

    def move(self, now: int) -> None:
        """Move the start, and forget older events."""
        self.begin = max(self.begin, (now - OVERLAP_MS, "", 0))
        self._seen = {place for place in self._seen if place > self.begin}
