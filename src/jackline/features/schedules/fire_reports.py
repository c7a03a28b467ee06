"""Reports about fires: the notices of those that went wrong, and the pinged addresses. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.errors import UsageError
from jackline.features.schedules.schedule_model import CLAIMED, FAILED, MISSED, OVERDUE, is_due
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import MINUTE_MS, format_iso, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.features.schedules.schedule_model import Schedule

_MOST = 2_000
_LATE_MS = 5 * MINUTE_MS


def list_unreported_fires(home: Home, since: int, now: int) -> Iterator[tuple[str, str]]:
    """The name of a schedule, and what is wrong with one of its fires since a time."""
    schedules = ScheduleStore(home.store())
    for schedule in schedules.list_all():
        for fire in reversed(schedules.list_fires(schedule.name, _MOST)):
            is_late = fire.state == CLAIMED and now - fire.due_at > _LATE_MS
            if fire.due_at >= since and (is_late or fire.state in {MISSED, FAILED, OVERDUE}):
                why = f": {fire.reason}" if fire.reason else ""
                yield schedule.name, f"due at {format_iso(fire.due_at, 'seconds')}, {fire.state}{why}"
        try:
            if schedule.paused_at is None and is_due(schedule, now - _LATE_MS):
                yield schedule.name, "is due, and nothing fires it: start `jackline serve`"
        except UsageError as error:  # its time zone is gone
            yield schedule.name, f"cannot fire: {error}"


def find_ping_url(home: Home, schedule: Schedule) -> str:
    """The address of a schedule's runs: its own, else that of the settings; empty if there is none."""
    return str(schedule.definition.run.get("ping") or home.config.get_text("ping"))


def find_url_of_fire(home: Home, run_id: str) -> str:
    """The address for the fire that should have created this run; empty if its schedule has none any more."""
    schedules = ScheduleStore(home.store())
    fire = schedules.find_fire_of_run(run_id)
    schedule = None if fire is None else schedules.find(fire.schedule)
    return "" if schedule is None else find_ping_url(home, schedule)


def describe_fire(home: Home, run_id: str) -> str:
    """The result of that fire, for the log of the server."""
    fire = ScheduleStore(home.store()).find_fire_of_run(run_id)
    if fire is None:
        return ""
    due = format_iso(fire.due_at, "seconds")
    return f"schedule {fire.schedule}, due at {due}: {fire.state}\n{make_printable(fire.reason)}".strip()
