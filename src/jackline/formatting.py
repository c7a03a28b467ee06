"""Formats times, durations, money, counts and untrusted text, and parses times. It reads no clock and no file.

`datetime` and `shlex` are imported where they are used: most state commands need neither.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

_UNITS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_AGE_UNITS = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS))
_OLD_MS = 14 * DAY_MS
_LONGEST_MS = 100 * 365 * DAY_MS
_MOST_DIGITS = 15  # more digits exceed a hundred years in any unit, and int() refuses thousands of them
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_THOUSAND, _MILLION = 1_000, 1_000_000
_CENT = 10_000  # in millionths of a dollar
_LINE_LENGTH = 160
# Control characters except line ends and tabs, halves of characters, and characters without a visible shape: they
# steer a terminal, reverse or hide text, or split a line.
_UNPRINTABLE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ASCII = str.maketrans({"✓": "ok", "✗": "x", "…": "...", "·": "-", "≈": "~", "→": "->", "↳": ">", "⏎": ";"})
_TAB_SIZE = 4

# times


@overload
def to_datetime(at: int) -> datetime: ...
@overload
def to_datetime(at: None) -> None: ...
def to_datetime(at: int | None) -> datetime | None:
    """Convert milliseconds since 1970 to UTC. A time outside of the calendar becomes the nearest one inside it."""
    if at is None:
        return None
    from datetime import UTC, datetime, timedelta

    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=max(_FIRST_MS, min(at, _LAST_MS)))


@overload
def format_iso(at: int, timespec: str = "milliseconds") -> str: ...
@overload
def format_iso(at: None, timespec: str = "milliseconds") -> None: ...
def format_iso(at: int | None, timespec: str = "milliseconds") -> str | None:
    """Format a time for programs: ISO 8601 in UTC."""
    return None if at is None else to_datetime(at).isoformat(timespec=timespec).removesuffix("+00:00") + "Z"


def format_rfc3339(time: datetime) -> str:
    """Format a time as Go does: in milliseconds, unless it was read from a file that is more precise."""
    digits = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.isoformat(timespec=digits).replace("+00:00", "Z")


def format_date(at: int) -> str:
    """Format the day of a time, in UTC."""
    return to_datetime(at).date().isoformat()


def format_utc(at: int | None) -> str:
    """Format a time for reports, in UTC."""
    return "-" if at is None else to_datetime(at).isoformat(" ", "seconds").removesuffix("+00:00")


def format_local(at: int | None, now: int) -> str:
    """Format a time for people, in their time zone: the time of day, with the date unless it is today."""
    if at is None:
        return "-"
    time, today = to_datetime(at).astimezone(), to_datetime(now).astimezone()
    if time.date() == today.date():
        return f"{time:%H:%M:%S}"
    return f"{time:%d %b %H:%M}" if time.year == today.year else f"{time:%Y-%m-%d %H:%M}"


def format_age(at: int, now: int) -> str:
    """Format how long ago a time was, in one unit: 12s ago, 3m ago, 5d ago; after two weeks its date."""
    age = max(0, now - at)
    if age >= _OLD_MS:
        return format_date(at)
    unit, size = next((unit, size) for unit, size in _AGE_UNITS if age >= size or unit == "s")
    return f"{age // size}{unit} ago"


def parse_time(text: str, now: int, *, ahead: bool = False) -> int:
    """Parse 2h or 3d as a time before `now`, or a date, which is local without a zone; otherwise raise ValueError.

    `ahead`: 2h is a time after `now`.
    """
    length = parse_duration(text)
    if ahead and length == _LONGEST_MS:
        raise ValueError(f"'{text}' is a hundred years from now, or more; use 2h, 3d or a date such as 2026-11-01")
    if length is not None:
        return now + length if ahead else now - length
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(text).astimezone().timestamp() * SECOND_MS)
    except (ValueError, OverflowError):
        message = f"'{text}' is not a valid time; use 2h, 3d or a date such as 2026-11-01"
        raise ValueError(message) from None


# durations


def format_duration(ms: int) -> str:
    """Format a duration in at most two units of whole seconds or more."""
    if ms < MINUTE_MS:
        return f"{max(0, ms) // SECOND_MS}s"
    if ms < HOUR_MS:
        return f"{ms // MINUTE_MS}m {ms % MINUTE_MS // SECOND_MS:02}s"
    if ms < DAY_MS:
        return f"{ms // HOUR_MS}h {ms % HOUR_MS // MINUTE_MS:02}m"
    return f"{ms // DAY_MS}d {ms % DAY_MS // HOUR_MS:02}h"


def format_elapsed(ms: int) -> str:
    """Format a duration; below ten seconds with its tenths."""
    return f"{ms / SECOND_MS:.1f}s" if ms < 10 * SECOND_MS else format_duration(ms)


def format_call_time(ms: int) -> str:
    """Format the duration of a call; below a tenth of a second in milliseconds."""
    return f"{max(0, ms)}ms" if ms < SECOND_MS // 10 else format_elapsed(ms)


def parse_duration(text: str) -> int | None:
    """Parse 45s, 30m, 2h, 3d or 1w into milliseconds, at most a hundred years; None if it is something else."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isascii() or not number.isdigit():
        return None
    number = number.lstrip("0") or "0"
    return _LONGEST_MS if len(number) > _MOST_DIGITS else min(int(number) * _UNITS[unit], _LONGEST_MS)


# amounts


def to_usd(micros: int | None) -> float | None:
    """Convert millionths of a dollar to dollars."""
    return None if micros is None else micros / _MILLION


def format_usd(micros: int | None, estimated: int = 0) -> str:
    """Format money; less than a cent with its hundredths, and ≈ before an amount that is in part `estimated`."""
    if micros is None:
        return "unknown"
    amount = f"${micros / _MILLION:.4f}" if 0 < micros < _CENT else f"${micros / _MILLION:.2f}"
    return f"≈{amount}" if estimated else amount


def format_cost(micros: int, estimated: int = 0) -> str:
    """Format what was spent; zero means that no agent reported a cost."""
    return format_usd(micros, estimated) if micros else "-"


def format_count(number: int) -> str:
    """Format a count in few characters: 9999, 12.3k, 1.2M."""
    if number < 10 * _THOUSAND:
        return str(number)
    return f"{number / _THOUSAND:.1f}k" if number < _MILLION else f"{number / _MILLION:.1f}M"


def pluralize(count: int, word: str) -> str:
    """Format a count with its noun."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def join_some(names: Sequence[str], most: int) -> str:
    """List the first names, and count the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


# text from agents, models and files


def make_printable(text: str) -> str:
    """Replace control and format characters, including line ends, by spaces."""
    return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def make_readable(text: str) -> str:
    """Replace control and format characters, except line ends and tabs, by a replacement character."""
    return re.sub(_UNPRINTABLE, "\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def escape_json(text: str) -> str:
    """Escape control and format characters in JSON text; its values stay the same."""
    return re.sub(_UNPRINTABLE, lambda found: json.dumps(found[0])[1:-1], text)


def make_encodable(text: str, encoding: str) -> str:
    """Replace jackline's symbols by ASCII, and escape all other characters that the encoding lacks."""
    text = text.translate(_ASCII)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def measure_width(text: str) -> int:
    """Count the columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def shorten_text(text: str, columns: int) -> str:
    """Cut a text to a number of columns; a cut text ends with an ellipsis."""
    if measure_width(text) <= columns:
        return text
    while text and measure_width(text) > columns - 1:
        text = text[: min(len(text) - 1, max(columns, 1))]
    return text + "…" if columns > 0 else ""


def shorten_path(path: str, home: str, columns: int) -> str:
    """Shorten a path: the home becomes `~`, and folders in front become an ellipsis until it fits."""
    root = home.rstrip("/")
    if root and f"{path}/".startswith(f"{root}/"):
        path = f"~{path[len(root) :]}"
    while measure_width(path) > columns:
        _, slash, rest = path.removeprefix("…/").partition("/")
        if not slash or not rest:
            return shorten_text(path, columns)
        path = f"…/{rest}"
    return path


def wrap_text(text: str, columns: int) -> list[str]:
    """Break the lines that do not fit at spaces; a continued line keeps the indent of its first."""
    return [part for line in text.expandtabs(_TAB_SIZE).splitlines() for part in _wrap_line(line, columns)]


def _wrap_line(line: str, columns: int) -> list[str]:
    if measure_width(line) <= columns:
        return [line.rstrip()]
    indent = line[: min(len(line) - len(line.lstrip()), columns // 2)]
    room = max(columns - len(indent), 2)  # a wide character takes two columns
    parts: list[str] = []
    for word in line.split():
        if parts and measure_width(f"{parts[-1]} {word}") <= room:
            parts[-1] += f" {word}"
        else:
            parts += _split_word(word, room)
    return [indent + part for part in parts]


def _split_word(word: str, columns: int) -> list[str]:
    if measure_width(word) <= columns:
        return [word]
    parts = [""]
    for one in word:
        if parts[-1] and measure_width(parts[-1] + one) > columns:
            parts.append("")
        parts[-1] += one
    return parts


def format_line(text: str, most: int = _LINE_LENGTH) -> str:
    """Join a text into one line, shorten it, and replace control characters."""
    text = text.lstrip()  # before the cut: leading blanks alone would leave an empty span, and those can be combined
    shown = " ".join(text[: 4 * most].split())
    if not shown.isprintable():
        shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in shown)
    return shown if len(shown) <= most and len(text) <= 4 * most else f"{shown[: most - 1]}…"


# Markdown


def format_code(text: str, most: int = _LINE_LENGTH) -> str:
    """Format untrusted text as a code span, in which Markdown ignores HTML, links, emphasis and tables."""
    return quote_code(format_line(text, most)) if text.strip() else "-"


def quote_code(text: str) -> str:
    """Enclose a text in more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text))) if "`" in text else 0
    marks, gap = "`" * (longest + 1), " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{gap}{text}{gap}{marks}"


def format_table(titles: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Format the lines of a table. `titles` has a `|` between two columns; a `|` in a cell is escaped, even in code."""
    names = titles.split("|")
    # With a space after a backslash: some renderers read `\\|` as a backslash and the end of the column.
    cells = [[cell.replace("\\|", "\\ |").replace("|", "\\|") for cell in row] for row in rows]
    return [
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(row)} |" for row in cells),
        "",
    ]


# shells


def format_command(*words: str) -> str:
    """Quote and join words into a command for a shell; zsh expands a leading `=`, which `shlex` leaves bare."""
    from shlex import quote

    return " ".join(f"'{one}'" if one.startswith("=") and quote(one) == one else quote(one) for one in words)
