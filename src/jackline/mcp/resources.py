"""MCP resources: the dashboard, and the timelines of runs, cases and work items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import journal
from jackline.domain.journal import EventId
from jackline.formatting import format_iso
from jackline.mcp import streams
from jackline.store.contract import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.events import Event
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

_MOST = 200  # events
_LONGEST = 2_000  # characters of one


def register_resources(server: Server, context: ToolContext) -> None:
    """Register the resources."""

    @server.resource("jackline://dashboard", name="dashboard", mime_type="text/markdown")
    def dashboard() -> str:
        """Running and failed runs, questions for a person with the command to answer, the queue, and spending."""
        from jackline.app.dashboard import read_dashboard
        from jackline.domain.dashboard import to_markdown

        with context.open() as home:
            return to_markdown(read_dashboard(home))

    @server.resource("jackline://runs/{id}/timeline", name="run timeline", mime_type="text/plain")
    def run_timeline(id: str) -> str:
        """The newest events of a run, oldest first, including the messages and calls of its agent."""
        return _render_timeline(context, streams.of_run, id)

    @server.resource("jackline://cases/{id}/timeline", name="case timeline", mime_type="text/plain")
    def case_timeline(id: str) -> str:
        """The newest events of a case, oldest first."""
        return _render_timeline(context, streams.of_case, id)

    @server.resource("jackline://items/{id}/timeline", name="work item timeline", mime_type="text/plain")
    def work_timeline(id: str) -> str:
        """The newest events of a work item, oldest first."""
        return _render_timeline(context, streams.of_item, id)


def _render_timeline(context: ToolContext, stream_of: Callable[[Home, str], str], name: str) -> str:
    with context.open() as home:
        query = TimelineQuery(stream=stream_of(home, name), whole=True, limit=_MOST)
        return "".join(f"{_format_event(event)}\n" for event in reversed(journal.timeline(home, query)))


def _format_event(event: Event) -> str:
    text = f"{format_iso(event.at)} {EventId(event.stream, event.seq)} {event.kind} by {event.actor}: {event.data}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
