"""Tables for the terminal, for the marked blocks of a Markdown page, and as JSON. It measures nothing.

Ratios come first: they hold on another machine, absolute numbers do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass

from benchmarks.measure import Sample, Spread, difference, ratio, spread

HEAD = ("what", "ratio", "quartiles", "goal", "", "took", "against", "which took")
_SMALL_S = 0.02  # below, a tenth of a millisecond matters
_NONE = Spread(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison; without a goal it is informational. Meeting one of two goals is enough."""

    name: str
    yardstick: str
    ratio: Spread
    seconds: Spread
    yardstick_seconds: Spread
    goal: float | None = None
    difference: Spread = _NONE
    goal_seconds: float | None = None  # an acceptable difference, whatever the ratio is

    @property
    def verdict(self) -> str:
        """Whether the medians meet a goal."""
        if not self.goal_text:
            return ""
        is_near = self.goal_seconds is not None and self.difference.median <= self.goal_seconds
        return "met" if is_near or (self.goal is not None and self.ratio.median <= self.goal) else "missed"

    @property
    def goal_text(self) -> str:
        """The goals, formatted."""
        times = [] if self.goal is None else [f"≤ {self.goal:g} ×"]
        more = [] if self.goal_seconds is None else [f"{format_duration(self.goal_seconds)} more"]
        return " or ".join((*times, *more) if times else [f"≤ {one}" for one in more])


@dataclass(frozen=True, slots=True)
class Table:
    """One row of the benchmark: a question, and the lines that answer it."""

    key: str
    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def compare(sample: Sample, yardstick: Sample, goal: float | None = None, goal_seconds: float | None = None) -> Line:
    """A line from two samples of the same rounds."""
    return Line(
        name=sample.name,
        yardstick=yardstick.name,
        ratio=ratio(sample, yardstick),
        seconds=spread(sample.seconds),
        yardstick_seconds=spread(yardstick.seconds),
        goal=goal,
        difference=difference(sample, yardstick),
        goal_seconds=goal_seconds,
    )


def describe_difference(line: Line) -> str:
    """Format how much slower than the yardstick a line is."""
    median, low, high = (_format_signed_ms(seconds) for seconds in astuple(line.difference))
    return f"{line.name}: {median} ms (quartiles {low} to {high})"


def _format_signed_ms(seconds: float) -> str:
    return f"{seconds * 1000:+.1f}" if abs(seconds) < _SMALL_S else f"{seconds * 1000:+.0f}"


def render_terminal(table: Table) -> str:
    """A table with aligned columns."""
    rows = [HEAD, *(_build_cells(line) for line in table.lines)] if table.lines else []
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(len(HEAD))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.title, *(f"  {row}" for row in text), *(f"  - {note}" for note in table.notes)])


def render_markdown(table: Table) -> str:
    """A table for the page."""
    rows = [
        HEAD,
        ("---", "---:", "---", "---", "---", "---:", "---", "---:"),
        *(_build_cells(line) for line in table.lines),
    ]
    notes = [f"- {note}" for note in table.notes]
    if not table.lines:
        return "\n".join(notes)
    text = ["| " + " | ".join(_escape_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join([*text, *(["", *notes] if notes else [])])


def render_json(tables: Iterable[Table], versions: Mapping[str, str]) -> str:
    """All measurements, in seconds."""
    rows = [
        {**asdict(table), "lines": [{**asdict(line), "verdict": line.verdict} for line in table.lines]}
        for table in tables
    ]
    return json.dumps({"versions": dict(versions), "rows": rows}, indent=2)


def replace_block(page: str, key: str, text: str) -> str:
    """Replace the text between the marks of a block; ValueError if the page lacks them."""
    begin, end = f"<!-- {key}: begin -->", f"<!-- {key}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page needs one '{begin}' and after it one '{end}'")
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def render_versions(versions: Mapping[str, str]) -> str:
    """The measured versions, in one sentence."""
    return "Measured with " + ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


def _build_cells(line: Line) -> Sequence[str]:
    return (
        line.name,
        f"{line.ratio.median:.2f} ×",
        f"{line.ratio.low:.2f} – {line.ratio.high:.2f}",
        line.goal_text,
        line.verdict,
        format_duration(line.seconds.median),
        line.yardstick,
        format_duration(line.yardstick_seconds.median),
    )


def format_duration(seconds: float) -> str:
    """Format milliseconds with three significant digits."""
    milliseconds = seconds * 1000
    digits = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2 if milliseconds >= 1 else 3
    return f"{milliseconds:.{digits}f} ms"


def _escape_cell(cell: str) -> str:
    return cell.replace("|", "\\|")
