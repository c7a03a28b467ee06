"""What a running service does for schedules. Commands of --only-if may take long, and have a thread of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.service_tasks import ServiceTask
from jackline.features.schedules.firing import ScheduleRunner

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext

_LOOK_SECONDS = 5.0  # for the commands of --only-if, without a signal


def list_tasks(_home: Home) -> list[ServiceTask]:
    """The tasks of this feature."""
    return [ServiceTask("schedules", fire_schedules), ServiceTask("schedule-conditions", check_conditions)]


def fire_schedules(context: ServiceContext) -> float:
    """Fire what is due, and report what is overdue; the seconds until something is due again."""
    if context.home.is_new:
        return _LOOK_SECONDS
    runner = ScheduleRunner(context.home, context.service_id)
    if runner.record_due():
        context.home.wake_services()  # the thread with the commands of --only-if, too
    runner.start_runs(conditional=False)
    runner.settle_open()
    return runner.find_pause()


def check_conditions(context: ServiceContext) -> float:
    """Start the runs whose command of --only-if succeeds."""
    if not context.home.is_new:
        ScheduleRunner(context.home, context.service_id).start_runs(conditional=True)
    return _LOOK_SECONDS
