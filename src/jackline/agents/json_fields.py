"""Reads untrusted JSON lines, counts and texts that agents print. Pure; nothing here raises."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.domain.outcome import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


RAW = (AgentEvent("raw"),)  # counted, not copied: the transcript has every byte
_LARGEST = 10**15  # a larger number is nonsense, and would not fit a database integer
_DURATION_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|d|h|m|s)")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def parse_line(line: bytes, to_events: Callable[[dict[str, Any]], Iterable[AgentEvent]]) -> tuple[AgentEvent, ...]:
    """Convert a line to events; a blank line has none, and a line without a JSON object is `raw`."""
    if not line.strip():
        return ()
    fields = parse_object(line)
    return RAW if fields is None else tuple(to_events(fields))


def parse_object(line: bytes) -> dict[str, Any] | None:
    """Parse the JSON object on a line; None if there is none. Both databases can store every text in the result."""
    line = line.strip()
    if not line.startswith(b"{"):  # a gigabyte of garbage must not go through the JSON parser
        return None
    try:
        text = line.decode("utf-8", "replace")  # json itself would accept lone surrogates, and guess UTF-16
        fields: dict[str, Any] = json.loads(text)
        return _make_storable(fields) if "\\u" in text else fields  # only escapes can still add such characters
    except (ValueError, RecursionError):
        return None


def as_dict(value: object) -> dict[str, Any]:
    """Return a nested object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a nested list; an empty one for any other value."""
    return value if isinstance(value, list) else []


def as_str(value: object) -> str:
    """Return a text; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def as_count(value: object, times: int = 1) -> int:
    """Return a whole number; 0 for anything that is not a count (a text, NaN, a negative number)."""
    return round(as_number(value) * times)


def as_number(value: object) -> float:
    """Return a number of 0 or more, fractions included; 0 for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return 0
    return min(value, _LARGEST)


def seconds_to_ms(seconds: object) -> int | None:
    """Convert a time in seconds to milliseconds; None if there is none."""
    return as_count(seconds, times=1000) or None


def usd_to_micros(usd: object) -> int:
    """Convert an amount in USD to millionths."""
    return min(as_count(usd, times=1_000_000), _LARGEST)


def parse_duration_ms(text: str) -> int:
    """Parse `36.5s`, `18h31m10s` or `5 m` to milliseconds."""
    return round(sum(float(count) * _UNITS[unit] for count, unit in _DURATION_PART.findall(text)))


def strip_colours(tail: str) -> str:
    """Remove the terminal's colour codes."""
    return _COLOUR.sub("", tail)


def _make_storable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replace lone surrogates, which have no UTF-8, and NUL, which PostgreSQL rejects."""
    if isinstance(value, dict):
        return {_make_storable(name): _make_storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_make_storable(item) for item in value]
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return value
