"""Reading what agents print: JSON lines, counts and texts that may be anything. Pure; nothing here raises."""

from __future__ import annotations

import json
from typing import Any

from jackline.domain.outcome import Heard

RAW = (Heard("raw"),)  # counted, not copied: the transcript has every byte
_MOST = 10**15  # a larger number is nonsense, and would not fit a database's integer


def fields_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; None if there is none. Every text in it is one that both databases take."""
    line = line.strip()
    if not line.startswith(b"{"):  # a gigabyte of garbage must not go through the JSON parser
        return None
    try:
        fields: dict[str, Any] = json.loads(line)
        return _storable(fields) if b"\\u" in line else fields  # only escapes can bring in other texts
    except (ValueError, RecursionError):
        return None


def table(value: object) -> dict[str, Any]:
    """A nested object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """A nested list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def text(value: object) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: object, times: int = 1) -> int:
    """A count from what an agent printed: anything that is none (a text, NaN, less than nothing) counts 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return 0
    return round(min(value, _MOST) * times)


def milliseconds(seconds: object) -> int | None:
    """A time that an agent gave in seconds."""
    return whole(seconds, times=1000) or None


def micros(usd: object) -> int:
    """An amount that an agent gave in USD."""
    return whole(usd, times=1_000_000)


def _storable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {_plain(name): _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return _plain(value) if isinstance(value, str) else value


def _plain(value: str) -> str:
    """Without half surrogates, which have no UTF-8, and NUL, which PostgreSQL refuses."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
