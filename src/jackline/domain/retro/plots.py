"""Draws the bars of a retro as text, which every reader of Markdown can show. Pure; it counts nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jackline.domain.retro import spans
from jackline.domain.retro.counts import by_day
from jackline.domain.retro.report import Report
from jackline.formatting import format_count, format_duration, format_line, format_usd, measure_width, shorten_text
from jackline.named import NamedTuple

_MARKS = "█▓▒░·"  # of the parts of a bar, in their order
_BAR_CELLS = 40
_LABEL_CELLS = 30
_MOST_BARS = 20
_INDENT = "    "  # an indented code block, which no text inside can end
_BUCKET_LABELS = {
    spans.RUNNING: "running",
    spans.QUEUED: "queued",
    spans.LIMIT: "waiting for limits",
    spans.PEOPLE: "waiting for people",
    spans.OTHER: "other waits",
}


class Bar(NamedTuple):
    """One line of a plot: a label, its parts by name, and the text at its end."""

    label: str
    parts: dict[str, int]
    end: str


def plot_success(report: Report) -> list[str]:
    """Runs by agent and task, and how they ended."""
    return draw_bars(
        [
            Bar(
                f"{one.agent} · {one.task}",
                {"succeeded": one.succeeded, "failed": one.failed, "cancelled": one.cancelled},
                f"{format_count(one.succeeded)} of {format_count(one.ended)}",
            )
            for one in report.successes[:_MOST_BARS]
        ]
    )


def plot_cost(report: Report) -> list[str]:
    """The cost of each day, by agent; all but the most expensive agents count as others."""
    total: Counter[str] = Counter()
    for one in report.spending:
        total[one.agent] += one.usd_micros
    shown = [agent for agent, _ in total.most_common(len(_MARKS) - 1)]
    bars = []
    for day, spending in by_day(report.spending, report.week.days).items():
        parts = dict.fromkeys((*shown, "others"), 0)
        for one in spending:
            parts[one.agent if one.agent in shown else "others"] += max(0, one.usd_micros)
        bars.append(Bar(day, parts, format_usd(sum(one.usd_micros for one in spending))))
    return draw_bars(bars)


def plot_time(report: Report) -> list[str]:
    """How long runs worked, and how long they waited for what."""
    times = {label: report.times.of(bucket) for bucket, label in _BUCKET_LABELS.items()}
    return draw_bars([Bar(label, {"time": ms}, format_duration(ms)) for label, ms in times.items()])


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
