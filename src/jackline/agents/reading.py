"""Reading what agents print: JSON lines, counts and texts that may be anything. Pure; nothing here raises."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.domain.outcome import Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RAW = (Heard("raw"),)  # counted, not copied: the transcript has every byte
_MOST = 10**15  # a larger number is nonsense, and would not fit a database's integer
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|d|h|m|s)")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def parsed(line: bytes, meaning: Callable[[dict[str, Any]], Iterable[Heard]]) -> tuple[Heard, ...]:
    """What a line says, by what its fields mean; a blank one says nothing, and one without fields is `raw`."""
    if not line.strip():
        return ()
    fields = fields_of(line)
    return RAW if fields is None else tuple(meaning(fields))


def fields_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line; None if there is none. Every text in it is one that both databases take."""
    line = line.strip()
    if not line.startswith(b"{"):  # a gigabyte of garbage must not go through the JSON parser
        return None
    try:
        words = line.decode("utf-8", "replace")  # json itself would take half surrogates, and guess at UTF-16
        fields: dict[str, Any] = json.loads(words)
        return _storable(fields) if "\\u" in words else fields  # now only escapes can bring in other texts
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
    return round(amount(value) * times)


def amount(value: object) -> float:
    """A number from what an agent printed, fractions and all."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return 0
    return min(value, _MOST)


def milliseconds(seconds: object) -> int | None:
    """A time that an agent gave in seconds."""
    return whole(seconds, times=1000) or None


def micros(usd: object) -> int:
    """An amount that an agent gave in USD."""
    return min(whole(usd, times=1_000_000), _MOST)


def duration(words: str) -> int:
    """Milliseconds of `36.5s`, `18h31m10s` or `5 m`."""
    return round(sum(float(count) * _UNITS[unit] for count, unit in _PART.findall(words)))


def colourless(tail: str) -> str:
    """What was meant for a terminal, without its colours."""
    return _COLOUR.sub("", tail)


def _storable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {_plain(name): _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return _plain(value) if isinstance(value, str) else value


def _plain(value: str) -> str:
    """Without half surrogates, which have no UTF-8, and NUL, which PostgreSQL refuses."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
