"""Times that have not come: what a wrong clock wrote down is taken as now. Pure; it has no clock of its own.

Else it would stand at the top of every list, and among what failed since yesterday, until that time comes.
"""

from __future__ import annotations

from typing import Any, TypeVar

_TIMES = frozenset(
    {"at", "created_at", "updated_at", "started_at", "ended_at", "finished_at", "closed_at", "prepared_at"}
)
T = TypeVar("T")


def not_after(found: T, now: int) -> T:
    """The same, and no time in it later than now; the very same if there is none."""
    made = _walked(found, now)
    return found if made == found else made


def _walked(value: Any, now: int) -> Any:  # noqa: ANN401 - whatever records are made of
    if hasattr(value, "_fields"):
        return value._replace(**{name: _told(name, one, now) for name, one in value._asdict().items()})
    return tuple(_walked(one, now) for one in value) if isinstance(value, tuple) else value


def _told(name: str, value: Any, now: int) -> Any:  # noqa: ANN401
    return min(value, now) if name in _TIMES and isinstance(value, int) else _walked(value, now)
