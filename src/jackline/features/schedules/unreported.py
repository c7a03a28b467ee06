"""Fires of schedules that should have started a run, or whose run should have ended. It reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.schedules.schedule_model import CLAIMED, FAILED, MISSED, OVERDUE
from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import MINUTE_MS, format_iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home

_MOST = 2_000
_LATE_MS = 5 * MINUTE_MS


def list_unreported_fires(home: Home, since: int, now: int) -> Iterator[tuple[str, str]]:
    """The name of a schedule, and what is wrong with one of its fires since a time."""
    from jackline.features.schedules.firing import is_due

    schedules = ScheduleStore(home.store())
    for schedule in schedules.list_all():
        for fire in reversed(schedules.list_fires(schedule.name, _MOST)):
            is_late = fire.state == CLAIMED and now - fire.due_at > _LATE_MS
            if fire.due_at >= since and (is_late or fire.state in {MISSED, FAILED, OVERDUE}):
                why = f": {fire.reason}" if fire.reason else ""
                yield schedule.name, f"due at {format_iso(fire.due_at, 'seconds')}, {fire.state}{why}"
        if schedule.paused_at is None and is_due(schedule, now - _LATE_MS):
            yield schedule.name, "is due, and nothing fires it: start `jackline serve`"
