"""The address that is requested for a fire that started no run, and what is said there. It reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.schedules.schedule_store import ScheduleStore
from jackline.formatting import format_iso, make_printable

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.schedules.schedule_model import Schedule


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
    """What became of that fire, for the log of the server."""
    fire = ScheduleStore(home.store()).find_fire_of_run(run_id)
    if fire is None:
        return ""
    due = format_iso(fire.due_at, "seconds")
    return f"schedule {fire.schedule}, due at {due}: {fire.state}\n{make_printable(fire.reason)}".strip()
