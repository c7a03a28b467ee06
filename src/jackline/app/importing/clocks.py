"""Limits times of imported data to now: a future time of a wrong clock would stay at the top of every list. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

_TIMES = frozenset(
    {"at", "created_at", "updated_at", "started_at", "ended_at", "finished_at", "closed_at", "prepared_at"}
)
T = TypeVar("T")


def not_after(found: T, now: int) -> T:
    """The record without times later than now; the same object if nothing changes."""
    made = _limit_values(found, now)
    return found if made == found else made


def _limit_values(value: Any, now: int) -> Any:  # noqa: ANN401 - whatever records are made of
    if hasattr(value, "_fields"):
        return value._replace(**{name: _limit_field(name, one, now) for name, one in value._asdict().items()})
    return tuple(_limit_values(one, now) for one in value) if isinstance(value, tuple) else value


def _limit_field(name: str, value: Any, now: int) -> Any:  # noqa: ANN401
    return min(value, now) if name in _TIMES and isinstance(value, int) else _limit_values(value, now)
