"""ISO weeks: from their name to their moments, in UTC. Pure, by counting days since 1970-01-01, a Thursday."""

from __future__ import annotations

import re

from jackline.domain.saying import DAY_MS, day
from jackline.named import NamedTuple

_NAME = re.compile(r"([0-9]{4})-W([0-9]{2})")
_THURSDAY = 3  # counted from Monday; the year of a week is that of its Thursday
_YEAR_ONE = 719_162  # days from 0001-01-01 to 1970-01-01
DAYS = 7
WEEK_MS = DAYS * DAY_MS


class Week(NamedTuple):
    """A week from the midnight before Monday to the one after Sunday."""

    name: str  # 2026-W46
    start: int
    until: int

    @property
    def days(self) -> tuple[str, ...]:
        """Its seven days."""
        return tuple(day(self.start + place * DAY_MS) for place in range(DAYS))


def parse(text: str) -> Week | None:
    """The week of that name; None if there is none."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    fourth = _new_year(int(found[1])) + 3  # the fourth of January is always in the first week
    week = _of(_monday(fourth) + DAYS * (int(found[2]) - 1))
    return week if week.name == text else None


def current(now: int) -> Week:
    """The week of this moment."""
    return _of(_monday(now // DAY_MS))


def before(week: Week, weeks: int) -> Week:
    """The week so many weeks earlier."""
    return _of(week.start // DAY_MS - DAYS * weeks)


def last_full(now: int) -> Week:
    """The last week that is over."""
    return before(current(now), 1)


def _of(monday: int) -> Week:
    thursday = monday + _THURSDAY
    year = int(day(thursday * DAY_MS)[:4])
    number = (thursday - _new_year(year)) // DAYS + 1
    return Week(f"{year:04}-W{number:02}", monday * DAY_MS, (monday + DAYS) * DAY_MS)


def _monday(days: int) -> int:
    return days - (days + _THURSDAY) % DAYS


def _new_year(year: int) -> int:
    past = year - 1
    return 365 * past + past // 4 - past // 100 + past // 400 - _YEAR_ONE
