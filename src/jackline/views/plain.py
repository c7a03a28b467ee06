"""Small conversions that every view shares: times, JSON, text that is safe to print. No clock, no files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)  # Go's zero time: what a manifest has where no time was set
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999  # the last moment of the year 9999
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def moment(ms: int) -> datetime:
    """The time of a number of milliseconds; an absurd one (a limit that never ends) is the last there is."""
    return _EPOCH + timedelta(milliseconds=max(0, min(ms, _LAST_MS)))


def moment_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else moment(ms)


def rfc3339(time: datetime) -> str:
    """The time as Go writes it; milliseconds, unless it was read from a file that knew it better."""
    digits = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.isoformat(timespec=digits).replace("+00:00", "Z")


def usd_or_none(micros: int | None) -> float | None:
    return None if micros is None else micros / 1_000_000


def readable(text: str) -> str:
    """The text without what could steer a terminal: an agent wrote it, a person will print it."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def json_bytes(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """One JSON object and a newline; half a character from an agent, which UTF-8 has not, is escaped."""
    text = json.dumps(values, ensure_ascii=False, indent=indent)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(values, indent=indent).encode() + b"\n"


def json_object(text: str | bytes) -> dict[str, Any]:
    """The object in a text, or ValueError; NaN and Infinity, which are no JSON, become null."""
    try:
        values = json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - whoever reads a file expects one kind of error
    return values


def to_values(record: Any, omit: frozenset[str] = frozenset()) -> dict[str, Any]:  # noqa: ANN401 - any record
    """The fields of a record in their order, as JSON values; the empty ones among `omit` are left out."""
    named = {one.name: getattr(record, one.name) for one in fields(record)}
    return {name: _value(value) for name, value in named.items() if value or name not in omit}


def from_values(record: Any, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - any record
    """The reverse: what an object says about a record's fields; ValueError names the one that does not fit.

    A field that is missing keeps its default, and one that nobody knows is passed over, as in Go.
    """
    known = {one.name: _READERS[str(one.type)] for one in fields(record) if values.get(one.name) is not None}
    return {name: _read(name, reader, values[name]) for name, reader in known.items()}


def _value(value: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, datetime):
        return rfc3339(value)
    return list(value) if isinstance(value, tuple) else value


def _read(name: str, reader: _Reader, value: object) -> object:
    kind, word = reader
    if kind is datetime:
        return _time(name, value)
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    message = f"'{name}' is not {word}"
    raise ValueError(message)


def _time(name: str, value: object) -> datetime:
    try:
        time = datetime.fromisoformat(str(value))
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        message = f"'{name}' is not an RFC 3339 time"
        raise ValueError(message)
    return time


_Reader = tuple[type, str]
_READERS: dict[str, _Reader] = {
    "int": (int, "a whole number"),
    "str": (str, "a text"),
    "datetime": (datetime, "a time"),
    "datetime | None": (datetime, "a time"),
    "Mapping[str, Any]": (dict, "an object"),
}
