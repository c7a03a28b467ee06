"""Renders the report of a week as Markdown. Pure; foreign text is in code spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jackline.domain.retro import plots, spans
from jackline.domain.retro.report import Report
from jackline.domain.states import WorkStatus
from jackline.formatting import (
    format_code,
    format_cost,
    format_count,
    format_duration,
    format_table,
    format_usd,
    format_utc,
    pluralize,
    quote_code,
)
from jackline.named import NamedTuple, stored_as

_MOST_ROWS = 50


@stored_as("id question status answer command is_new")
class Asked(NamedTuple):
    """A proposal in the queue."""

    id: str
    question: str
    status: str
    answer: str
    command: str  # to answer it
    is_new: bool = False


def generated(report: Report, asked: Sequence[Asked]) -> str:
    """Render the generated part of the file."""
    parts = (
        _render_head(report),
        _render_proposals(report, asked),
        _render_success(report),
        _render_cost(report),
        _render_time(report),
        _render_limits(report),
        _render_failures(report),
        _render_learnings(report),
        _render_proofs(report),
    )
    return "\n".join(line for part in parts for line in part)


def _render_head(report: Report) -> Iterator[str]:
    week = report.week
    yield from ("", f"{week.days[0]} to {week.days[-1]}, in UTC; {pluralize(report.ended, 'run')} ended.", "")
    if not report.is_over:
        yield from (f"The week is not over: this is the state at {format_utc(report.until)}.", "")
    if report.is_empty:
        yield from ("Nothing happened in this week.", "")
    if report.archived:
        gone = pluralize(report.archived, "run")
        yield from (f"The events of {gone} were archived: their time is not counted below.", "")


def _render_proposals(report: Report, asked: Sequence[Asked]) -> Iterator[str]:
    yield from ("## Proposals", "")
    for one in asked:
        yield f"- {format_code(one.question, 600)}"
        if one.status == WorkStatus.WAITING_HUMAN:
            yield f"  - {quote_code(one.command)}"
        else:
            answer = f": {format_code(one.answer, 200)}" if one.answer else ""
            yield f"  - {one.status}{answer} (item {format_code(one.id)})"
    if not asked:
        yield "None." if report.is_over else "None yet."
    yield ""


def _render_success(report: Report) -> Iterator[str]:
    yield from ("## Success by agent and task", "", *plots.plot_success(report))
    rows = [
        [
            format_code(one.agent),
            format_code(one.task),
            str(one.succeeded),
            str(one.proved),
            str(one.failed),
            str(one.cancelled),
            "-" if one.rate is None else f"{one.rate:.0%}",
            format_cost(one.usd_micros),
            format_count(one.tokens),
        ]
        for one in report.successes
    ]
    yield from _render_table("agent|task|succeeded|of them proved|failed|cancelled|success|cost|tokens", rows)


def _render_cost(report: Report) -> Iterator[str]:
    total = sum(one.usd_micros for one in report.spending)
    cost = format_usd(total) if total or not report.spending else "unknown"
    yield from (f"## Cost: {cost}", "", *plots.plot_cost(report))
    agents = sorted({one.agent for one in report.spending})
    rows = (
        [[day, *(_format_spent(report, day, agent) for agent in agents)] for day in report.week.days] if agents else []
    )
    yield from _render_table("|".join(("day", *(format_code(agent).replace("|", "/") for agent in agents))), rows)


def _format_spent(report: Report, day: str, agent: str) -> str:
    return format_cost(sum(one.usd_micros for one in report.spending if (one.day, one.agent) == (day, agent)))


def _render_time(report: Report) -> Iterator[str]:
    times = report.times
    yield from ("## Where time went", "", *plots.plot_time(report))
    rows = [
        ["running", "-", "-", format_duration(times.running)],
        ["queued", "a worker", "-", format_duration(times.queued)],
        *(["waiting", _format_reason(one.reason), str(one.times), format_duration(one.ms)] for one in times.waits),
    ]
    yield from _render_table("state|for|times|how long, over all runs", rows if times.running or times.lost else [])


def _format_reason(reason: str) -> str:
    """A reason and its bucket in the plot."""
    return f"{format_code(reason)} ({spans.bucket_of(reason)})"


def _render_limits(report: Report) -> Iterator[str]:
    yield from ("## Limits hit", "")
    yield from _render_table(
        "agent|turns that ended at a limit", [[format_code(one.agent), str(one.turns)] for one in report.limits]
    )


def _render_failures(report: Report) -> Iterator[str]:
    yield from ("## Failure classes", "")
    rows = [[one.failure, str(one.runs), str(one.turns)] for one in report.failures]
    yield from _render_table("class|runs that failed so|turns that failed so", rows)


def _render_learnings(report: Report) -> Iterator[str]:
    yield from ("## Repeated learnings without an artifact", "")
    rows = [
        [
            format_code(one.kind),
            format_code(one.summary),
            ", ".join(f"{format_code(each.case_id)} {each.id}" for each in one.learnings[:8]),
        ]
        for one in report.repeated
    ]
    yield from _render_table("kind|summary|where", rows)


def _render_proofs(report: Report) -> Iterator[str]:
    yield from ("## Flaky proofs", "")
    rows = [
        [format_code(one.command), one.why, ", ".join(format_code(run) for run in one.runs[:8])] for one in report.flaky
    ]
    yield from _render_table("command|why|runs", rows)


def _render_table(titles: str, rows: list[list[str]]) -> list[str]:
    if not rows:
        return ["None.", ""]
    more = [f"And {len(rows) - _MOST_ROWS} more.", ""] if len(rows) > _MOST_ROWS else []
    return [*format_table(titles, rows[:_MOST_ROWS]), *more]
