"""When a schedule is due, and how missed times are handled. Pure: times are passed in, and nothing is stored.

Times of day follow cron of Debian. A time that the clocks skip in spring is due when they have been moved; a time that
they repeat in autumn is due once, the first time. An expression with `*` in its minute or hour, or with seconds, is
compared with the clock on the wall instead: nothing in the skipped hour, and twice in the repeated one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from jackline.errors import UsageError
from jackline.formatting import HOUR_MS, MINUTE_MS, SECOND_MS, format_iso, to_datetime
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta, tzinfo

SKIP, ONCE, ALL = CATCH_UP = ("skip", "once", "all")
QUEUE, CANCEL_OLD = "queue", "cancel-old"
OVERLAP = (SKIP, QUEUE, CANCEL_OLD)

# The states of a fire. The first three are open: something is still expected of it.
CLAIMED = "claimed"  # recorded; its run is not created yet
STARTED = "started"
OVERDUE = "overdue"  # started, but its run has not ended in time
ENDED = "ended"
MISSED = "missed"  # nothing was there to start it, and it is not caught up
SKIPPED = "skipped"  # the run of an earlier fire had not ended
NOT_WANTED = "not_wanted"  # the command of --only-if failed
FAILED = "failed"  # its run cannot be created
FIRE_STATES = (CLAIMED, STARTED, OVERDUE, ENDED, MISSED, SKIPPED, NOT_WANTED, FAILED)
OPEN_FIRES = (CLAIMED, STARTED, OVERDUE)

MOST_CAUGHT_UP = 10
MOST_WAITING = 100  # fires of a schedule that wait for their runs; more are skipped
MOST_RECORDED = 50  # missed times that are recorded one by one; one row covers those before
ON_TIME_MS = MINUTE_MS  # a fire that is found later than this counts as missed
LONGEST_NAME = 40  # a run's id is the name and a time
_LONGEST_EXPRESSION = 200
_FIRST_WINDOW_MS = HOUR_MS
_FIELDS = 5  # without seconds
_NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_EXAMPLE = 'such as "0 3 * * *" for every night at three, or "*/15 9-17 * * MON-FRI"'


@stored_as("cron zone workspace run catch_up catch_up_most overlap only_if expect_ms")
class ScheduleDefinition(NamedTuple):
    """What a schedule starts, and when; stored as JSON. Its request is built when it fires."""

    cron: str
    zone: str
    workspace: str
    run: Mapping[str, Any]  # arguments of `jackline run` by name
    catch_up: str = ONCE
    catch_up_most: int = MOST_CAUGHT_UP
    overlap: str = SKIP
    only_if: str = ""
    expect_ms: int = 0


@stored_as("name definition checked_until paused_at created_at updated_at")
class Schedule(NamedTuple):
    """A schedule. Every due time up to `checked_until` is recorded; only later ones can fire."""

    name: str
    definition: ScheduleDefinition
    checked_until: int
    paused_at: int | None
    created_at: int
    updated_at: int


@stored_as("schedule due_at state run_id reason at updated_at owner claimed_until")
class Fire(NamedTuple):
    """One due time of a schedule, and its result."""

    schedule: str
    due_at: int
    state: str
    run_id: str
    reason: str
    at: int
    updated_at: int
    owner: str = ""
    claimed_until: int = 0


class DuePlan(NamedTuple):
    """What to record for the due times of a period: those that fire, those that are missed, and missed ones before."""

    fires: tuple[int, ...] = ()
    missed: tuple[int, ...] = ()
    missed_since: int | None = None  # the first of those that are not listed


# times


def load_zone(name: str) -> tzinfo:
    """The time zone of that name; UsageError if there is none."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        shown = name[:40].encode("unicode_escape").decode()
        raise UsageError(f"'{shown}' is not a time zone; use a name such as Europe/Berlin or UTC") from None


def check_expression(cron: str, zone: str, after: int) -> None:
    """Raise UsageError, with an example, unless the expression is valid and is due some day."""
    from cronsim import CronSimError

    shown = cron[:60].encode("unicode_escape").decode()
    if len(cron) > _LONGEST_EXPRESSION or not cron.isascii():
        raise UsageError(f"'{shown}' is not a cron expression; write five fields, {_EXAMPLE}")
    load_zone(zone)
    try:
        first = find_next_due(cron, zone, after)
    except CronSimError as error:
        nicknames = f"; known are {', '.join(_NICKNAMES)}" if cron.startswith("@") else ""
        why = f"{str(error).lower()}{nicknames}"
        raise UsageError(f"'{shown}' is not a cron expression ({why}); write five fields, {_EXAMPLE}") from None
    if first is None:
        raise UsageError(f"'{shown}' is never due in the next 50 years; write five fields, {_EXAMPLE}")


def iterate_due(cron: str, zone: str, after: int) -> Iterator[int]:
    """The due times after a time, in milliseconds, in order.

    cronsim gets and finds local times without a zone, and they are mapped to it here: with a zone, cronsim never ends
    where the clocks are not moved by an hour on the hour, and leaves out times where they are moved at midnight.
    """
    from cronsim import CronSim

    place, expression = load_zone(zone), _NICKNAMES.get(cron.lower(), cron)
    fields = expression.split()
    is_fixed = len(fields) == _FIELDS and not any(field.startswith("*") for field in fields[:2])
    local = to_datetime(after).astimezone(place)
    # How long the period is that the clocks repeat soon, if `local` is in its first pass: earlier times come again.
    repeated = _get_offset(local) - _get_offset(local.replace(fold=1))
    last, again = after, deque[int]()  # `again`: due times in a second pass that are not yielded yet
    for wall in CronSim(expression, local.replace(tzinfo=None, fold=0) - repeated):
        first, second = (round(wall.replace(tzinfo=place, fold=fold).timestamp()) for fold in (0, 1))
        if first > second and not is_fixed:
            continue  # the clocks skip it
        if first < second and not is_fixed:
            again.append(second * SECOND_MS)
        due = (first if first <= second else _find_move(place, second, first)) * SECOND_MS
        times = []
        while again and again[0] <= due:
            times.append(again.popleft())
        for one in (*times, due):
            if one > last:
                last = one
                yield one


def _get_offset(local: datetime) -> timedelta:
    from datetime import timedelta

    return local.utcoffset() or timedelta()


def _find_move(place: tzinfo, before: int, after: int) -> int:
    """When the clocks were moved between two times, in seconds."""
    from datetime import datetime

    old = datetime.fromtimestamp(before, place).utcoffset()
    seconds = range(before, after)
    return before + bisect_left(seconds, 1, key=lambda at: datetime.fromtimestamp(at, place).utcoffset() != old)


def find_next_due(cron: str, zone: str, after: int) -> int | None:
    """The first due time after a time; None if there is none in 50 years."""
    return next(iterate_due(cron, zone, after), None)


def list_next_due(schedule: Schedule, now: int, count: int) -> list[int]:
    """The next due times; none of a schedule that is paused, or whose time zone this machine does not know."""
    definition = schedule.definition
    if schedule.paused_at is not None:
        return []
    try:
        return list(islice(iterate_due(definition.cron, definition.zone, max(now, schedule.checked_until)), count))
    except UsageError:  # the zone was known when the schedule was added
        return []


def is_due(schedule: Schedule, now: int) -> bool:
    """Whether the schedule has a due time that is not recorded."""
    if now <= schedule.checked_until:
        return False
    due = find_next_due(schedule.definition.cron, schedule.definition.zone, schedule.checked_until)
    return due is not None and due <= now


def list_newest_due(cron: str, zone: str, after: int, until: int, least: int) -> list[int]:
    """The newest due times in (after, until], oldest first: at least that many, if there are so many.

    Only the end of a long period is looked at: seconds over years would be a billion times.
    """
    window = _FIRST_WINDOW_MS
    while True:
        start = max(after, until - window)
        found = []
        for due in iterate_due(cron, zone, start):
            if due > until:
                break
            found.append(due)
        if len(found) >= least or start == after:
            return found
        window *= 4


def plan_due(definition: ScheduleDefinition, checked_until: int, now: int) -> DuePlan:
    """Decide about every due time in (checked_until, now]; none if the clock was set back.

    The newest one fires if it was found on time. Of the missed ones `once` fires the newest, `all` the newest few.
    """
    if now <= checked_until:
        return DuePlan()
    wanted = {SKIP: 1, ONCE: 1, ALL: definition.catch_up_most}[definition.catch_up]
    found = list_newest_due(definition.cron, definition.zone, checked_until, now, MOST_RECORDED + wanted + 1)
    if definition.catch_up == SKIP and found and now - found[-1] > ON_TIME_MS:
        wanted = 0
    fires = found[len(found) - min(wanted, len(found)) :]
    missed = found[: len(found) - len(fires)]
    more = missed[:-MOST_RECORDED]
    since = find_next_due(definition.cron, definition.zone, checked_until) if more else None
    return DuePlan(fires=tuple(fires), missed=tuple(missed[-MOST_RECORDED:]), missed_since=since)


def parse_catch_up(text: str) -> tuple[str, int]:
    """Parse skip, once, all or all:N into the policy and the most runs that are caught up."""
    policy, colon, number = text.partition(":")
    if policy not in CATCH_UP or (colon and (policy != ALL or not re.fullmatch("[1-9][0-9]{0,2}", number))):
        raise UsageError(f"--catch-up {text[:40]}: use skip, once, all, or all:N with N from 1 to 999")
    return policy, int(number) if number else MOST_CAUGHT_UP


def build_run_id(name: str, due_at: int) -> str:
    """The id of the run of a fire: the same wherever it is created."""
    timespec = "milliseconds" if due_at % SECOND_MS else "seconds"
    stamp = re.sub("[-:]", "", str(format_iso(due_at, timespec)))
    return f"{name}-{stamp}"


def is_overdue(definition: ScheduleDefinition, fire: Fire, now: int) -> bool:
    """Whether the run of an open fire should have ended by now."""
    return bool(definition.expect_ms) and fire.state in OPEN_FIRES and now > fire.due_at + definition.expect_ms
