"""The MCP tool for the status of a run, and MCP resources: the dashboard and timelines. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from jackline.errors import UsageError
from jackline.features.journal import journal_events
from jackline.features.journal.journal_events import EventId
from jackline.features.mcp.context import find_case_stream, find_item_stream, find_run_stream
from jackline.features.mcp.state_server import READS
from jackline.formatting import format_iso
from jackline.store.models import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import StateServer


_MICROS, _MS = 1_000_000, 1_000
_MOST = 200  # events of a timeline
_LONGEST = 2_000  # characters of one


class Amounts(TypedDict):
    """What a run has used in all its attempts."""

    seconds: float
    iterations: int
    steps: int
    calls: int
    tokens: int
    usd: float


class Bounds(TypedDict):
    """The limits of a run; null: no limit."""

    seconds: float | None
    iterations: int | None
    steps: int | None
    calls: int | None
    tokens: int | None
    usd: float | None


class RunAnswer(TypedDict):
    """The status of a run."""

    id: str
    number: int
    state: str
    reason: str | None
    phase: str | None
    agent: str
    task: str
    prompt: str
    workspace: str
    attempt: int
    step: int
    turn: int
    iteration: int
    proof: str
    failure: str | None
    detail: str
    proof_command: str
    cancel_requested: bool
    spent: Amounts
    limits: Bounds
    wake_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


def register_run_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tool for runs."""

    @server.add_described_tool(READS)
    def run_status(
        run: Annotated[
            str, Field(description="a run id or a unique prefix of one; empty: the run in which you work")
        ] = "",
    ) -> RunAnswer:
        """The status of a jackline run: state, reason for waiting, step, proof, and spending against its limits.

        Without an id: the run in which you work. `state` is queued, running, waiting (see `reason`),
        succeeded, failed or cancelled.
        """
        run_id = run or context.run_id
        if not run_id:
            raise UsageError("this server was not started inside a run: pass a run id")
        with context.open() as home:
            return _build_run_answer(home.store().wakeups.adjust_wake_time(home.find(run_id)))


def _build_run_answer(run: Run) -> RunAnswer:
    status, spec = run.status, run.spec
    spent, limits = status.spent, spec.limits
    return RunAnswer(
        id=run.id,
        number=run.number,
        state=status.state,
        reason=status.reason,
        phase=status.phase,
        agent=run.agent,
        task=spec.task,
        prompt=spec.prompt,
        workspace=spec.workspace,
        attempt=status.attempt,
        step=status.step,
        turn=status.turn,
        iteration=status.iteration,
        proof=status.proof,
        failure=status.failure,
        detail=status.detail,
        proof_command=spec.proof,
        cancel_requested=status.cancel_requested,
        spent=Amounts(
            seconds=spent.wall_ms / _MS,
            iterations=spent.iterations,
            steps=spent.steps,
            calls=spent.calls,
            tokens=spent.tokens,
            usd=spent.usd_micros / _MICROS,
        ),
        limits=Bounds(
            seconds=None if limits.wall_ms is None else limits.wall_ms / _MS,
            iterations=limits.iterations,
            steps=limits.steps,
            calls=limits.calls,
            tokens=limits.tokens,
            usd=None if limits.usd_micros is None else limits.usd_micros / _MICROS,
        ),
        wake_at=format_iso(status.wake_at),
        created_at=format_iso(run.created_at),
        started_at=format_iso(run.started_at),
        finished_at=format_iso(run.finished_at),
    )


def register_resources(server: StateServer, context: ToolContext) -> None:
    """Register the resources."""

    @server.resource("jackline://dashboard", name="dashboard", mime_type="text/markdown")
    def dashboard() -> str:
        """Running and failed runs, questions for a person with the command to answer, the queue, and spending."""
        from jackline.features.reports.dashboard import read_dashboard
        from jackline.features.reports.dashboard_page import render_dashboard

        with context.open() as home:
            return render_dashboard(read_dashboard(home))

    @server.resource("jackline://runs/{id}/timeline", name="run timeline", mime_type="text/plain")
    def run_timeline(id: str) -> str:
        """The newest events of a run, oldest first, including the messages and calls of its agent."""
        return _render_timeline(context, find_run_stream, id)

    @server.resource("jackline://cases/{id}/timeline", name="case timeline", mime_type="text/plain")
    def case_timeline(id: str) -> str:
        """The newest events of a case, oldest first."""
        return _render_timeline(context, find_case_stream, id)

    @server.resource("jackline://items/{id}/timeline", name="work item timeline", mime_type="text/plain")
    def work_timeline(id: str) -> str:
        """The newest events of a work item, oldest first."""
        return _render_timeline(context, find_item_stream, id)


def _render_timeline(context: ToolContext, find_stream: Callable[[Home, str], str], name: str) -> str:
    with context.open() as home:
        query = TimelineQuery(stream=find_stream(home, name), whole=True, limit=_MOST)
        lines = [
            f"{format_iso(event.at)} {EventId(event.stream, event.seq)} {event.kind} by {event.actor}: {event.data}"
            for event in reversed(journal_events.read_timeline(home, query))
        ]
    return "".join(f"{line}\n" if len(line) <= _LONGEST else f"{line[:_LONGEST]}…\n" for line in lines)
