"""The plots of a week: bars in SVG, made by hand. Pure text; it shows what it is given and counts nothing itself."""

from __future__ import annotations

from collections.abc import Sequence

from jackline.domain.retro import spans
from jackline.domain.retro.counts import by_day
from jackline.domain.retro.report import Report
from jackline.domain.saying import duration, line, usd
from jackline.named import NamedTuple

# Told apart also by who sees few colours (Okabe and Ito).
GREEN, RED, GREY, BLUE, YELLOW, ORANGE = "#009e73", "#d55e00", "#999999", "#0072b2", "#f0e442", "#e69f00"
_COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", YELLOW, RED, GREY)
_BUCKETS = dict(zip(spans.BUCKETS, (BLUE, GREY, ORANGE, RED, YELLOW), strict=True))
_WIDTH, _LABEL, _VALUE = 760, 220, 90
_ROW, _BAR, _TOP, _LEGEND = 26, 18, 40, 30
_MOST_ROWS = 20
_LETTER = 7  # how wide one is, about
_SHORTEST = 12
_STYLE = 'font-family="sans-serif" font-size="12" role="img"'


class Part(NamedTuple):
    """A piece of a bar."""

    name: str
    colour: str
    value: float


class Bar(NamedTuple):
    """A row of the plot."""

    label: str
    parts: tuple[Part, ...]
    said: str  # at its end

    @property
    def total(self) -> float:
        """How long it is."""
        return sum(part.value for part in self.parts)


def plots(report: Report) -> dict[str, str]:
    """Every plot that has something to show, by its name."""
    made = {"success": _success(report), "cost": _cost(report), "time": _time(report)}
    titles = {
        "success": f"Runs that ended in {report.week.name}, by agent and task",
        "cost": f"Cost of each day of {report.week.name}",
        "time": f"Where the time of runs went in {report.week.name}",
    }
    return {name: svg(titles[name], bars) for name, bars in made.items() if any(bar.total > 0 for bar in bars)}


def _success(report: Report) -> list[Bar]:
    return [
        Bar(
            f"{one.agent} · {one.task}",
            (
                Part("succeeded", GREEN, one.succeeded),
                Part("failed", RED, one.failed),
                Part("cancelled", GREY, one.cancelled),
            ),
            f"{one.succeeded} of {one.ended}",
        )
        for one in report.successes[:_MOST_ROWS]
    ]


def _cost(report: Report) -> list[Bar]:
    agents = sorted({one.agent for one in report.spending})
    colours = {agent: _COLOURS[place % len(_COLOURS)] for place, agent in enumerate(agents)}
    days = by_day(report.spending, report.week.days)
    return [
        Bar(
            day,
            tuple(Part(one.agent, colours[one.agent], max(0, one.usd_micros)) for one in spending),
            usd(sum(one.usd_micros for one in spending)),
        )
        for day, spending in days.items()
    ]


def _time(report: Report) -> list[Bar]:
    names = {
        spans.RUNNING: "running",
        spans.QUEUED: "queued",
        spans.LIMIT: "waiting for limits",
        spans.PEOPLE: "waiting for people",
        spans.OTHER: "other waits",
    }
    return [
        Bar(names[bucket], (Part(names[bucket], _BUCKETS[bucket], ms),), duration(ms))
        for bucket in spans.BUCKETS
        for ms in (report.times.of(bucket),)
    ]


def svg(title: str, bars: Sequence[Bar]) -> str:
    """Lying bars, one below the other, with a legend where their labels do not say what is shown."""
    parts = {part.name: part.colour for bar in bars for part in bar.parts if part.value > 0}
    legend = parts if len(parts) > 1 and not parts.keys() <= {bar.label for bar in bars} else {}
    height = _TOP + _ROW * len(bars) + (_LEGEND if legend else 10)
    longest = max((bar.total for bar in bars), default=0) or 1
    scale = (_WIDTH - _LABEL - _VALUE) / longest
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_STYLE}>',
        f"<title>{_escaped(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(10, 22, title, size=14),
        *(piece for place, bar in enumerate(bars) for piece in _bar(bar, _TOP + place * _ROW, scale)),
        *_legend(legend, height - 10),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _bar(bar: Bar, top: int, scale: float) -> list[str]:
    label = line(bar.label, (_LABEL - 20) // _LETTER)
    pieces = [_text(_LABEL - 8, top + 13, label, anchor="end")]
    left = float(_LABEL)
    for part in bar.parts:
        wide = part.value * scale
        if wide > 0:
            pieces.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{_BAR}" fill="{part.colour}">'
                f"<title>{_escaped(part.name)}</title></rect>"
            )
        left += wide
    return [*pieces, _text(left + 6, top + 13, bar.said)]


def _legend(parts: dict[str, str], bottom: int) -> list[str]:
    pieces, left = [], float(_LABEL)
    for name, colour in parts.items():
        shown = line(name, 24)
        pieces.append(f'<rect x="{left:.1f}" y="{bottom - 10}" width="10" height="10" fill="{colour}"/>')
        pieces.append(_text(left + 14, bottom, shown))
        left += 14 + _LETTER * len(shown) + _SHORTEST
    return pieces


def _text(left: float, bottom: int, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{left:.1f}" y="{bottom}" text-anchor="{anchor}" font-size="{size}">{_escaped(text)}</text>'


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def _escaped(text: str) -> str:
    """One line without what XML does not know: somebody else may have written it."""
    return line(text).translate(_ESCAPES)
