"""MCP tools for the timeline of events. `features.journal.journal_events` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from jackline.errors import UsageError
from jackline.features.journal import journal_events
from jackline.features.journal.journal_events import EventId
from jackline.features.mcp.context import find_stream, limit_json
from jackline.features.mcp.state_server import ADDS, READS
from jackline.formatting import format_iso
from jackline.store.models import TimelineQuery

if TYPE_CHECKING:
    from jackline.domain.events import Event
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import StateServer

Limit = Annotated[int, Field(ge=1, le=500)]
Kind = Annotated[str, Field(description="only types with this prefix, such as work.")]
Actor = Annotated[str, Field(description="only events of this actor")]
Stream = Annotated[
    str, Field(description="only events of run:ID, case:ID, work:ID or journal: (events without an owner); empty: all")
]


class EventAnswer(TypedDict):
    """An event; a long payload is cut."""

    id: str
    at: str
    kind: str
    actor: str
    data: Any


class EventsAnswer(TypedDict):
    """Events, in the order that the tool documents."""

    events: list[EventAnswer]


def register_event_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tools for events."""

    @server.add_described_tool(ADDS)
    def events_append(
        kind: Annotated[str, Field(description="words separated by dots, such as build.finished")],
        payload: Annotated[dict[str, Any], Field(description="what happened")] = {},  # noqa: B006 - never changed
        work_item: Annotated[str, Field(description="the work item that it belongs to; empty: none")] = "",
    ) -> EventAnswer:
        """Append an event to the journal or to a work item. It can never be changed or removed."""
        with context.open() as home:
            return _build_event_answer(journal_events.append_event(home, kind, payload, item=work_item or None))

    @server.add_described_tool(READS)
    def events_tail(
        limit: Limit = 20,
        kind: Kind = "",
        actor: Actor = "",
        stream: Stream = "",
        after: Annotated[str, Field(description="an event id: only later events")] = "",
    ) -> EventsAnswer:
        """The newest events, oldest first; with `after`, the next ones after that event."""
        with context.open() as home:
            query = _build_query(find_stream(home, stream), kind, actor, limit)
            if after:
                place = journal_events.get_cursor(journal_events.find_event(home, after))
                return _build_answers(
                    journal_events.read_timeline(home, query._replace(after=place, newest_first=False))
                )
            return _build_answers(journal_events.read_timeline(home, query)[::-1])

    @server.add_described_tool(READS)
    def events_search(
        text: Annotated[str, Field(description="the text to find; ASCII letters match in either case")],
        limit: Limit = 50,
        kind: Kind = "",
        actor: Actor = "",
        stream: Stream = "",
    ) -> EventsAnswer:
        """The newest events with this text in their type, actor or payload, newest first."""
        if not text:
            raise UsageError("the text to search for is empty")
        with context.open() as home:
            query = _build_query(find_stream(home, stream), kind, actor, limit)
            return _build_answers(journal_events.read_timeline(home, query._replace(text=text)))


def _build_query(stream: str, kind: str, actor: str, limit: int) -> TimelineQuery:
    return TimelineQuery(kind=kind, actor=actor, stream=stream, limit=limit, whole=bool(stream))


def _build_answers(events: list[Event]) -> EventsAnswer:
    return EventsAnswer(events=[_build_event_answer(event) for event in events])


def _build_event_answer(event: Event) -> EventAnswer:
    return EventAnswer(
        id=str(EventId(event.stream, event.seq)),
        at=format_iso(event.at),
        kind=event.kind,
        actor=event.actor,
        data=limit_json(event.data),
    )
