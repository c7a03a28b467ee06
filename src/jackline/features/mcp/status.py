"""The MCP tool for the status of a run. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from jackline.errors import UsageError
from jackline.features.journal import journal
from jackline.features.journal.journal import EventId
from jackline.features.mcp import context as context_module
from jackline.features.mcp.state_server import READS
from jackline.formatting import format_iso
from jackline.store.models import TimelineQuery

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.events import Event
    from jackline.domain.limits import Limits, Spent
    from jackline.domain.records import Run
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import StateServer


_MICROS, _MS = 1_000_000, 1_000


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
            return _build_run_answer(home.find(run_id))


def _build_run_answer(run: Run) -> RunAnswer:
    life, spec = run.status, run.spec
    return RunAnswer(
        id=run.id,
        number=run.number,
        state=life.state,
        reason=life.reason,
        phase=life.phase,
        agent=run.agent,
        task=spec.task,
        prompt=spec.prompt,
        workspace=spec.workspace,
        attempt=life.attempt,
        step=life.step,
        turn=life.turn,
        iteration=life.iteration,
        proof=life.proof,
        failure=life.failure,
        detail=life.detail,
        proof_command=spec.proof,
        cancel_requested=life.cancel_requested,
        spent=_build_amounts(life.spent),
        limits=_build_bounds(spec.limits),
        wake_at=format_iso(life.wake_at),
        created_at=format_iso(run.created_at),
        started_at=format_iso(run.started_at),
        finished_at=format_iso(run.finished_at),
    )


def _build_amounts(spent: Spent) -> Amounts:
    return Amounts(
        seconds=spent.wall_ms / _MS,
        iterations=spent.iterations,
        steps=spent.steps,
        calls=spent.calls,
        tokens=spent.tokens,
        usd=spent.usd_micros / _MICROS,
    )


def _build_bounds(limits: Limits) -> Bounds:
    return Bounds(
        seconds=None if limits.wall_ms is None else limits.wall_ms / _MS,
        iterations=limits.iterations,
        steps=limits.steps,
        calls=limits.calls,
        tokens=limits.tokens,
        usd=None if limits.usd_micros is None else limits.usd_micros / _MICROS,
    )


_MOST = 200  # events
_LONGEST = 2_000  # characters of one


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
        return _render_timeline(context, context_module.find_run_stream, id)

    @server.resource("jackline://cases/{id}/timeline", name="case timeline", mime_type="text/plain")
    def case_timeline(id: str) -> str:
        """The newest events of a case, oldest first."""
        return _render_timeline(context, context_module.find_case_stream, id)

    @server.resource("jackline://items/{id}/timeline", name="work item timeline", mime_type="text/plain")
    def work_timeline(id: str) -> str:
        """The newest events of a work item, oldest first."""
        return _render_timeline(context, context_module.find_item_stream, id)


def _render_timeline(context: ToolContext, stream_of: Callable[[Home, str], str], name: str) -> str:
    with context.open() as home:
        query = TimelineQuery(stream=stream_of(home, name), whole=True, limit=_MOST)
        return "".join(f"{_format_event(event)}\n" for event in reversed(journal.read_timeline(home, query)))


def _format_event(event: Event) -> str:
    text = f"{format_iso(event.at)} {EventId(event.stream, event.seq)} {event.kind} by {event.actor}: {event.data}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
