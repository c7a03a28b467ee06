"""The tools for the timeline of events. Thin: `app.journal` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from jackline.app import journal
from jackline.domain.journal import EventId
from jackline.errors import UsageError
from jackline.formatting import format_iso
from jackline.mcp import streams
from jackline.mcp.item import bounded
from jackline.mcp.kinds import ADDS, READS
from jackline.store.state_contract import TimelineQuery

if TYPE_CHECKING:
    from jackline.domain.events import Event
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

Limit = Annotated[int, Field(ge=1, le=500)]
Kind = Annotated[str, Field(description="only types that begin so, such as work.")]
Actor = Annotated[str, Field(description="only of this one")]
Stream = Annotated[
    str, Field(description="only of run:ID, case:ID, work:ID or journal: (what belongs to none); empty: everything")
]


class EventAnswer(TypedDict):
    """An event; a long payload is cut."""

    id: str
    at: str
    kind: str
    actor: str
    data: Any


class EventsAnswer(TypedDict):
    """Events, in the order that the tool says."""

    events: list[EventAnswer]


def register(server: Server, desk: Desk) -> None:
    """Offer them."""
    _register_writing(server, desk)
    _register_reading(server, desk)


def _register_writing(server: Server, desk: Desk) -> None:
    @server.offer(ADDS)
    def events_append(
        kind: Annotated[str, Field(description="words with dots between, such as build.finished")],
        payload: Annotated[dict[str, Any], Field(description="what happened")] = {},  # noqa: B006 - never changed
        work_item: Annotated[str, Field(description="the item that it belongs to; empty: none")] = "",
    ) -> EventAnswer:
        """Write an event into the journal, or beside a work item. It can never be changed or removed."""
        with desk.open() as home:
            return _answer(journal.append(home, kind, payload, item=work_item or None))


def _register_reading(server: Server, desk: Desk) -> None:
    @server.offer(READS)
    def events_tail(
        limit: Limit = 20,
        kind: Kind = "",
        actor: Actor = "",
        stream: Stream = "",
        after: Annotated[str, Field(description="an event's id: only what came after it")] = "",
    ) -> EventsAnswer:
        """The newest events, oldest first; with `after`, the next ones after that event."""
        with desk.open() as home:
            query = _query(streams.named(home, stream), kind, actor, limit)
            if after:
                place = journal.place_of(journal.event(home, after))
                return _answers(journal.timeline(home, query._replace(after=place, newest_first=False)))
            return _answers(journal.timeline(home, query)[::-1])

    @server.offer(READS)
    def events_search(
        text: Annotated[str, Field(description="in whatever case its ASCII letters are")],
        limit: Limit = 50,
        kind: Kind = "",
        actor: Actor = "",
        stream: Stream = "",
    ) -> EventsAnswer:
        """The newest events that have this text in their type, actor or payload, newest first."""
        if not text:
            raise UsageError("which text? an empty one is everywhere")
        with desk.open() as home:
            query = _query(streams.named(home, stream), kind, actor, limit)
            return _answers(journal.timeline(home, query._replace(text=text)))


def _query(stream: str, kind: str, actor: str, limit: int) -> TimelineQuery:
    return TimelineQuery(kind=kind, actor=actor, stream=stream, limit=limit, whole=bool(stream))


def _answers(events: list[Event]) -> EventsAnswer:
    return EventsAnswer(events=[_answer(event) for event in events])


def _answer(event: Event) -> EventAnswer:
    return EventAnswer(
        id=str(EventId(event.stream, event.seq)),
        at=format_iso(event.at),
        kind=event.kind,
        actor=event.actor,
        data=bounded(event.data),
    )
