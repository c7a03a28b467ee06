"""Renders the report of a week as Markdown, with bars of text that every reader can show. Pure.

Foreign text is in code spans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from jackline.domain.states import WorkStatus
from jackline.features.reports import retro_report
from jackline.features.reports.retro_findings import group_by_day
from jackline.features.reports.retro_report import WeekReport
from jackline.formatting import (
    format_code,
    format_cost,
    format_count,
    format_duration,
    format_line,
    format_table,
    format_usd,
    format_utc,
    measure_width,
    pluralize,
    quote_code,
    shorten_text,
)
from jackline.named import NamedTuple, stored_as

_MARKS = "█▓▒░·"  # of the parts of a bar, in their order
_BAR_CELLS = 40
_LABEL_CELLS = 30
_MOST_BARS = 20
_INDENT = "    "  # an indented code block, which no text inside can end
_BUCKET_LABELS = {
    retro_report.RUNNING: "running",
    retro_report.QUEUED: "queued",
    retro_report.LIMIT: "waiting for limits",
    retro_report.PEOPLE: "waiting for people",
    retro_report.OTHER: "other waits",
}
_MOST_ROWS = 50


@stored_as("id question status answer command is_new")
class AskedProposal(NamedTuple):
    """A proposal in the queue."""

    id: str
    question: str
    status: str
    answer: str
    command: str  # to answer it
    is_new: bool = False


def render_report(report: WeekReport, asked: Sequence[AskedProposal]) -> str:
    """Render the generated part of the file."""
    parts = (
        _render_head(report),
        _render_proposals(report, asked),
        _render_success(report),
        _render_cost(report),
        _render_time(report),
        _render_findings(report),
    )
    return "\n".join(line for part in parts for line in part)


def _render_head(report: WeekReport) -> Iterator[str]:
    week = report.week
    yield from ("", f"{week.days[0]} to {week.days[-1]}, in UTC; {pluralize(report.ended, 'run')} ended.", "")
    if not report.is_over:
        yield from (f"The week is not over: this is the state at {format_utc(report.until)}.", "")
    if report.is_empty:
        yield from ("Nothing happened in this week.", "")
    if report.archived:
        gone = pluralize(report.archived, "run")
        yield from (f"The events of {gone} were archived: their time is not counted below.", "")


def _render_proposals(report: WeekReport, asked: Sequence[AskedProposal]) -> Iterator[str]:
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


def _render_success(report: WeekReport) -> Iterator[str]:
    yield from ("## Success by agent and task", "", *plot_success(report))
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
    yield from _render_table("agent|task|succeeded|proved|failed|cancelled|success|cost|tokens", rows)


def _render_cost(report: WeekReport) -> Iterator[str]:
    total = sum(one.usd_micros for one in report.spending)
    cost = format_usd(total) if total or not report.spending else "unknown"
    yield from (f"## Cost: {cost}", "", *plot_cost(report))
    agents = sorted({one.agent for one in report.spending})
    spent: Counter[tuple[str, str]] = Counter()
    for one in report.spending:
        spent[one.day, one.agent] += one.usd_micros
    rows = [[day, *(format_cost(spent[day, agent]) for agent in agents)] for day in report.week.days] if agents else []
    yield from _render_table("|".join(("day", *(format_code(agent).replace("|", "/") for agent in agents))), rows)


def _render_time(report: WeekReport) -> Iterator[str]:
    times = report.times
    yield from ("## Where time went", "", *plot_time(report))
    rows = [
        ["running", "-", "-", format_duration(times.running)],
        ["queued", "a worker", "-", format_duration(times.queued)],
        *(
            [
                "waiting",
                f"{format_code(one.reason)} ({retro_report.get_bucket(one.reason)})",
                str(one.times),
                format_duration(one.ms),
            ]
            for one in times.waits
        ),
    ]
    yield from _render_table("state|for|times|total time", rows if times.running or times.lost else [])


def _render_findings(report: WeekReport) -> Iterator[str]:
    yield from ("## Limits hit", "")
    rows = [[format_code(one.agent), str(one.turns)] for one in report.limits]
    yield from _render_table("agent|turns that ended at a limit", rows)
    yield from ("## Failure classes", "")
    rows = [[one.failure, str(one.runs), str(one.turns)] for one in report.failures]
    yield from _render_table("class|runs that failed so|turns that failed so", rows)
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
    yield from ("## Flaky proofs", "")
    rows = [[format_code(one.command), one.why, ", ".join(map(format_code, one.runs[:8]))] for one in report.flaky]
    yield from _render_table("command|why|runs", rows)


def _render_table(titles: str, rows: list[list[str]]) -> list[str]:
    if not rows:
        return ["None.", ""]
    more = [f"And {len(rows) - _MOST_ROWS} more.", ""] if len(rows) > _MOST_ROWS else []
    return [*format_table(titles, rows[:_MOST_ROWS]), *more]


# bars


class Bar(NamedTuple):
    """One line of a plot: a label, its parts by name, and the text at its end."""

    label: str
    parts: dict[str, int]
    end: str


def plot_success(report: WeekReport) -> list[str]:
    """Runs by agent and task, and how they ended."""
    return draw_bars(
        [
            Bar(
                label=f"{one.agent} · {one.task}",
                parts={"succeeded": one.succeeded, "failed": one.failed, "cancelled": one.cancelled},
                end=f"{format_count(one.succeeded)} of {format_count(one.ended)}",
            )
            for one in report.successes[:_MOST_BARS]
        ]
    )


def plot_cost(report: WeekReport) -> list[str]:
    """The cost of each day, by agent; all but the most expensive agents count as others."""
    total: Counter[str] = Counter()
    for one in report.spending:
        total[one.agent] += one.usd_micros
    shown = [agent for agent, _ in total.most_common(len(_MARKS) - 1)]
    bars = []
    for day, spending in group_by_day(report.spending, report.week.days).items():
        parts = dict.fromkeys((*shown, "others"), 0)
        for one in spending:
            parts[one.agent if one.agent in shown else "others"] += max(0, one.usd_micros)
        bars.append(Bar(label=day, parts=parts, end=format_usd(sum(one.usd_micros for one in spending))))
    return draw_bars(bars)


def plot_time(report: WeekReport) -> list[str]:
    """How long runs worked, and how long they waited for what."""
    times = {label: report.times.of(bucket) for bucket, label in _BUCKET_LABELS.items()}
    return draw_bars([Bar(label=label, parts={"time": ms}, end=format_duration(ms)) for label, ms in times.items()])


def draw_bars(bars: Sequence[Bar]) -> list[str]:
    """Bars to scale, with a legend if they have several parts; nothing if all are empty."""
    longest = max((sum(bar.parts.values()) for bar in bars), default=0)
    if not longest:
        return []
    labels = [shorten_text(format_line(bar.label), _LABEL_CELLS) for bar in bars]
    width = max(map(measure_width, labels))
    lines = []
    for bar, label in zip(bars, labels, strict=True):
        cells = (  # a small part is shown as well
            mark * max(1, round(value * _BAR_CELLS / longest)) if value > 0 else ""
            for mark, value in zip(_MARKS, bar.parts.values(), strict=False)
        )
        lines.append(f"{_INDENT}{label}{' ' * (width - measure_width(label))}  {''.join(cells)} {bar.end}")
    used = [(mark, name) for mark, name in zip(_MARKS, bars[0].parts, strict=False) if any(b.parts[name] for b in bars)]
    if len(used) > 1:
        legend = "  ".join(f"{mark} {shorten_text(format_line(name), _LABEL_CELLS)}" for mark, name in used)
        lines += ["", f"{_INDENT}{legend}"]
    return [*lines, ""]
