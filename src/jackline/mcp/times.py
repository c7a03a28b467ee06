"""Moments as programs read them. Pure."""

from __future__ import annotations

import time

_SECOND = 1_000


def iso(at: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    seconds, rest = divmod(at, _SECOND)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"


def iso_or_none(at: int | None) -> str | None:
    """The same for a moment that has not come yet."""
    return None if at is None else iso(at)
