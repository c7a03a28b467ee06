"""Converts records to JSON objects and back, as the exported files have them. No clock, no files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from jackline.formatting import escape_json, format_rfc3339
from jackline.named import stored_dict, stored_names

ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)  # Go's zero time, which a manifest has where no time was set


def encode_json(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Encode one JSON object and a newline; control and format characters and lone surrogates are escaped."""
    return escape_json(json.dumps(values, ensure_ascii=False, indent=indent)).encode() + b"\n"


def decode_object(text: str | bytes) -> dict[str, Any]:
    """Decode an object, or raise ValueError; NaN and Infinity, which JSON does not have, become null."""
    try:
        values = json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - readers of files expect one kind of error
    return values


def dump_record(record: Any, omit: frozenset[str] = frozenset()) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Convert a record to JSON values by stored name; empty ones among `omit` are left out."""
    return {name: _encode_value(value) for name, value in stored_dict(record).items() if value or name not in omit}


def load_fields(record: Any, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - any record
    """Read the fields of a record from an object; ValueError names the first one that does not fit.

    A missing field keeps its default and an unknown one is ignored, as in Go.
    """
    named = zip(stored_names(record), record.__annotations__.items(), strict=True)
    known = {name: field for name, field in named if values.get(name) is not None}
    return {field: _decode_value(name, _READERS[kind], values[name]) for name, (field, kind) in known.items()}


def _encode_value(value: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, datetime):
        return format_rfc3339(value)
    return list(value) if isinstance(value, tuple) else value


def _decode_value(name: str, reader: _Reader, value: object) -> object:
    kind, word = reader
    if kind is datetime:
        with suppress(ValueError):
            value = datetime.fromisoformat(str(value))
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    if isinstance(value, kind) and not isinstance(value, bool) and not is_naive:
        return value
    message = f"'{name}' is not {word}"
    raise ValueError(message)


_Reader = tuple[type, str]
_READERS: dict[str, _Reader] = {
    "int": (int, "a whole number"),
    "str": (str, "a text"),
    "datetime": (datetime, "an RFC 3339 time"),
    "datetime | None": (datetime, "an RFC 3339 time"),
    "Mapping[str, Any]": (dict, "an object"),
}
