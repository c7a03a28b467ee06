"""The plots of a week: bars in SVG, made by hand. Pure text; it shows what it is given and counts nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jackline.domain.reporting import Spending
from jackline.domain.retro import spans
from jackline.domain.retro.counts import by_day
from jackline.domain.retro.report import Report
from jackline.formatting import format_count, format_duration, format_line, format_usd
from jackline.named import NamedTuple

# Told apart also by who sees few colours (Okabe and Ito).
GREEN, RED, GREY, BLUE, YELLOW, ORANGE = "#009e73", "#d55e00", "#999999", "#0072b2", "#f0e442", "#e69f00"
_COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", YELLOW, RED)
_BUCKETS = dict(zip(spans.BUCKETS, (BLUE, GREY, ORANGE, RED, YELLOW), strict=True))
_WIDTH, _LABEL, _VALUE = 760, 220, 90
_ROW, _BAR, _TOP, _LEGEND = 26, 18, 40, 30
_MOST_ROWS = 20
_LETTER, _CAPITAL, _IDEOGRAM = 7, 10, 13  # how wide one is, about
_FIRST_IDEOGRAM = "\u1100"
_GAP, _SQUARE = 12, 14
_LEAST = 1.0  # so that what is there is seen
_RICH = 1_000_000_000_000  # a million dollars
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
            f"{format_count(one.succeeded)} of {format_count(one.ended)}",
        )
        for one in report.successes[:_MOST_ROWS]
    ]


def _cost(report: Report) -> list[Bar]:
    spent: Counter[str] = Counter()
    for one in report.spending:
        spent[one.agent] += one.usd_micros
    dearest = {agent: _COLOURS[place] for place, (agent, _) in enumerate(spent.most_common(len(_COLOURS)))}
    days = by_day(report.spending, report.week.days)
    return [Bar(day, _of_day(spending, dearest), _money(spending)) for day, spending in days.items()]


def _of_day(spending: Sequence[Spending], dearest: Mapping[str, str]) -> tuple[Part, ...]:
    """Each of the dearest agents with its colour, always in the same order, and all others in one piece."""
    of_agent = {one.agent: max(0, one.usd_micros) for one in spending}
    others = sum(value for agent, value in of_agent.items() if agent not in dearest)
    known = (Part(agent, colour, of_agent.get(agent, 0)) for agent, colour in dearest.items())
    return (*known, Part("others", GREY, others))


def _money(spending: Sequence[Spending]) -> str:
    micros = sum(one.usd_micros for one in spending)
    return format_usd(micros) if micros < _RICH else f"${format_count(micros // 1_000_000)}"


def _time(report: Report) -> list[Bar]:
    names = {
        spans.RUNNING: "running",
        spans.QUEUED: "queued",
        spans.LIMIT: "waiting for limits",
        spans.PEOPLE: "waiting for people",
        spans.OTHER: "other waits",
    }
    return [
        Bar(names[bucket], (Part(names[bucket], _BUCKETS[bucket], ms),), format_duration(ms))
        for bucket in spans.BUCKETS
        for ms in (report.times.of(bucket),)
    ]


def svg(title: str, bars: Sequence[Bar]) -> str:
    """Lying bars, one below the other, with a legend where their labels do not say what is shown."""
    parts = {part.name: part.colour for bar in bars for part in bar.parts if part.value > 0}
    legend = parts if len(parts) > 1 and not parts.keys() <= {bar.label for bar in bars} else {}
    names = _legend(legend, _TOP + _ROW * len(bars) + _LEGEND - 10)
    height = _TOP + _ROW * len(bars) + (names.height if legend else 10)
    longest = max((bar.total for bar in bars), default=0) or 1
    scale = (_WIDTH - _LABEL - _VALUE) / longest
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_STYLE}>',
        f"<title>{_escaped(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(10, 22, title, size=14),
        *(piece for place, bar in enumerate(bars) for piece in _bar(bar, _TOP + place * _ROW, scale)),
        *names.pieces,
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def _bar(bar: Bar, top: int, scale: float) -> list[str]:
    pieces = [_text(_LABEL - 8, top + 13, _fitted(bar.label, _LABEL - 20), anchor="end")]
    left = float(_LABEL)
    for part in bar.parts:
        wide = max(_LEAST, part.value * scale) if part.value > 0 else 0.0
        if wide > 0:
            pieces.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{_BAR}" fill="{part.colour}">'
                f"<title>{_escaped(part.name)}</title></rect>"
            )
        left += wide
    return [*pieces, _text(left + 6, top + 13, bar.said)]


class Legend(NamedTuple):
    """What the colours mean, in as many lines as that takes."""

    pieces: tuple[str, ...]
    height: int


def _legend(parts: Mapping[str, str], bottom: int) -> Legend:
    pieces: list[str] = []
    left, first = _LABEL, bottom
    for name, colour in parts.items():
        shown = _fitted(name, _LABEL - 20)
        wide = _SQUARE + _width(shown) + _GAP
        if left + wide > _WIDTH:
            left, bottom = _LABEL, bottom + _ROW
        pieces.append(f'<rect x="{left}" y="{bottom - 10}" width="10" height="10" fill="{colour}"/>')
        pieces.append(_text(left + _SQUARE, bottom, shown))
        left += wide
    return Legend(tuple(pieces), _LEGEND + bottom - first)


def _fitted(text: str, room: int) -> str:
    """As much of it as has room."""
    shown = format_line(text)
    if _width(shown) <= room:
        return shown
    while shown and _width(shown) > room - _LETTER:
        shown = shown[:-1]
    return f"{shown}…"


def _width(text: str) -> int:
    return sum(_IDEOGRAM if one >= _FIRST_IDEOGRAM else _CAPITAL if one.isupper() else _LETTER for one in text)


def _text(left: float, bottom: int, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{left:.1f}" y="{bottom}" text-anchor="{anchor}" font-size="{size}">{_escaped(text)}</text>'


_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def _escaped(text: str) -> str:
    """One line without what XML does not know: somebody else may have written it."""
    return format_line(text).translate(_ESCAPES)
