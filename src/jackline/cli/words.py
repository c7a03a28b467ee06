"""How times, amounts and foreign text are written for people and for programs. Only the time zone is read."""

from __future__ import annotations

import time

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
UNITS = {"s": _SECOND, "m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_LONGEST_MS = 100 * 365 * 86_400_000
_MOST_DIGITS = 15  # more are a hundred years in any unit, and Python reads no number of thousands of them
_THOUSAND, _MILLION = 1_000, 1_000_000


def iso(at: int | None) -> str | None:
    """A moment for programs."""
    if at is None:
        return None
    seconds, rest = divmod(at, _SECOND)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"


def local(at: int | None, now: int) -> str:
    """A moment for people: the time of day, with the day if that is not today."""
    if at is None:
        return "-"
    moment, today = time.localtime(at / _SECOND), time.localtime(now / _SECOND)
    if moment[:3] == today[:3]:
        return time.strftime("%H:%M:%S", moment)
    return time.strftime("%d %b %H:%M" if moment.tm_year == today.tm_year else "%Y-%m-%d %H:%M", moment)


def duration(ms: int) -> str:
    """How long, in at most two units."""
    if ms < _MINUTE:
        return f"{ms / _SECOND:.1f}s" if ms < 10 * _SECOND else f"{ms // _SECOND}s"
    if ms < _HOUR:
        return f"{ms // _MINUTE}m {ms % _MINUTE // _SECOND:02d}s"
    if ms < _DAY:
        return f"{ms // _HOUR}h {ms % _HOUR // _MINUTE:02d}m"
    return f"{ms // _DAY}d {ms % _DAY // _HOUR:02d}h"


def span(text: str) -> int | None:
    """The milliseconds in 45s, 30m, 2h, 3d or 1w; None if it is no such thing."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit():
        return None
    number = number.lstrip("0") or "0"
    return _LONGEST_MS if len(number) > _MOST_DIGITS else min(int(number) * UNITS[unit], _LONGEST_MS)


def amount(number: int) -> str:
    """A count in few characters."""
    if number < 10 * _THOUSAND:
        return str(number)
    if number < _MILLION:
        return f"{number / _THOUSAND:.1f}k"
    return f"{number / _MILLION:.1f}M"


def usd(micros: int | None) -> str:
    """Money; cents matter, and so does a first tenth of one. What nobody told is not nothing."""
    if micros is None:
        return "unknown"
    value = micros / _MILLION
    return f"${value:.2f}" if value >= 1 or not micros else f"${value:.4f}"


def plural(count: int, word: str) -> str:
    """A count with its word."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Foreign text in one line, without anything that a terminal would obey."""
    return "".join(one if one.isprintable() else " " for one in text)


def width(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def shortened(text: str, columns: int) -> str:
    """A text cut to so many columns, with a sign that it was."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[: min(len(text) - 1, max(columns, 1))]
    return text + "…" if columns > 0 else ""
