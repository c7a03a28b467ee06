"""Cleans values from foreign files: of the wanted type, bounded and finite. Pure; it opens nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from jackline.domain.events import canonical

MOST_TEXT = 16_384  # characters of a message in an event
DEEPEST = 50
_MOST_NUMBER = 2**53
_LAST_MS = 253_402_300_799_999  # the last moment of the year 9999
_MOST_DIGITS = 20
_FIRST_YEAR = 1970  # Go's zero time is earlier and means an unset time
_MOST_ITEMS = 10_000  # of a list or an object
# A number of seconds, milliseconds, microseconds or nanoseconds since 1970: none is near another for 3,000 years.
_UNITS = ((10**11, 1000.0), (10**14, 1.0), (10**17, 1e-3), (10**20, 1e-6))


class SizeBudget:
    """Limits how much text of a source is held in memory."""

    def __init__(self, characters: int = 64 * 1024 * 1024) -> None:
        self._left = characters

    def reserve(self, value: object) -> bool:
        """Reserve room for a value; False if there is none."""
        self._left -= len(canonical(value))
        return self._left >= 0


def clean_text(value: object, most: int = MOST_TEXT) -> str:
    """A text, cut if it is too long; a number as digits; empty for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value) if abs(value) < _MOST_NUMBER else ""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= most else f"{value[:most]}\n[{len(value) - most} characters were left out here]"


def clean_name(value: object, default: str, most: int = 100) -> str:
    """A short printable word for a column that people read and filter by."""
    shown = "".join(one for one in clean_text(value, most).strip() if one.isprintable())
    return shown[:most] or default


def clean_integer(value: object, default: int = 0) -> int:
    """A whole number of a size that both databases hold, not below zero."""
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return default
    return max(0, min(value, _MOST_NUMBER))


def clean_number(value: object) -> float:
    """A finite number that is not below zero."""
    finite = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST_NUMBER
    return max(0.0, float(value)) if finite and isinstance(value, int | float) else 0.0


def parse_moment(value: object) -> int | None:
    """Milliseconds since 1970 from ISO text, or from a number in any unit; None if it is not a time."""
    if isinstance(value, str):
        return _parse_text(value.strip())
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < _UNITS[-1][0]:
        return None
    factor = next(factor for most, factor in _UNITS if value < most)
    return min(round(value * factor), _LAST_MS)


def _parse_text(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len("20260102") < len(text) <= _MOST_DIGITS:
        return parse_moment(int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if time.year < _FIRST_YEAR:
        return None
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return max(0, min(round(time.timestamp() * 1000), _LAST_MS))


def parse_stamp(text: str) -> int | None:
    """The time in a name such as `20260219_144003` or `20260219T144003Z-fix-it`."""
    shown = text[:15].replace("_", "T")
    return _parse_text(shown) if len(shown) == len("20260219T144003") and "T" in shown else None


def clean_json(value: Any, most: int = MOST_TEXT, depth: int = DEEPEST) -> Any:  # noqa: ANN401 - any JSON
    """Any JSON, not too deep, not too wide, with finite numbers that every program reads."""
    if isinstance(value, str):
        return clean_text(value, most)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value)[:40]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth <= 0:
        return "[nested too deeply]"
    if isinstance(value, dict):
        some = list(value.items())[:_MOST_ITEMS]
        return {clean_text(str(key), 200): clean_json(one, most, depth - 1) for key, one in some}
    return [clean_json(one, most, depth - 1) for one in value[:_MOST_ITEMS]] if isinstance(value, list) else None


def clean_texts(value: object) -> tuple[str, ...]:
    """The texts of a list; a text alone is a list of one."""
    if isinstance(value, str):
        return (clean_text(value),) if value else ()
    return (
        tuple(clean_text(one) for one in value[:_MOST_ITEMS] if isinstance(one, str)) if isinstance(value, list) else ()
    )
