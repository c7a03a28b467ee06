"""ISO weeks: from their names to their times, in UTC. Pure."""

from __future__ import annotations

import re
from datetime import date

from jackline.formatting import DAY_MS, format_date, to_datetime
from jackline.named import NamedTuple

_NAME = re.compile(r"([0-9]{4})-W([0-9]{2})")
DAYS = 7
WEEK_MS = DAYS * DAY_MS
_FIRST_MONDAY_MS = 4 * DAY_MS  # 1970 began on a Thursday


class Week(NamedTuple):
    """An ISO week, from Monday 00:00 UTC to the next."""

    name: str  # 2026-W46
    start: int
    until: int

    @property
    def days(self) -> tuple[str, ...]:
        """The dates of its days."""
        return tuple(format_date(self.start + place * DAY_MS) for place in range(DAYS))


def parse_week(text: str) -> Week | None:
    """Parse the name of a week; None if it does not exist."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    try:
        monday = date.fromisocalendar(int(found[1]), int(found[2]), 1)
    except ValueError:
        return None
    return _build_week((monday - date(1970, 1, 1)).days * DAY_MS)


def get_current_week(now: int) -> Week:
    """The current week."""
    return _build_week((now - _FIRST_MONDAY_MS) // WEEK_MS * WEEK_MS + _FIRST_MONDAY_MS)


def get_week_before(week: Week, weeks: int) -> Week:
    """The week a number of weeks earlier."""
    return _build_week(week.start - weeks * WEEK_MS)


def get_last_full_week(now: int) -> Week:
    """The last complete week."""
    return get_week_before(get_current_week(now), 1)


def _build_week(start: int) -> Week:
    year, number, _ = to_datetime(start + 3 * DAY_MS).isocalendar()  # the year of a week is that of its Thursday
    return Week(name=f"{year:04}-W{number:02}", start=start, until=start + WEEK_MS)
