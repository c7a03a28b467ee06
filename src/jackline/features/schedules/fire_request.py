"""Builds the request of a fire from what the schedule stores, and creates its run. It decides about no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.own_files import refuse_fresh_changes
from jackline.app.queue import enqueue
from jackline.cli.run_args import build_request
from jackline.cli.stored_args import load_run_arguments, open_workspace_home

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.schedules.schedule_model import Fire, Schedule


def create_run(home: Home, schedule: Schedule, fire: Fire) -> None:
    """Put the run of a fire into the queue, with the settings, task and files as they are now."""
    definition = schedule.definition
    with open_workspace_home(home, definition.workspace, definition.run) as there:
        args = load_run_arguments(definition.run, definition.workspace, fire.run_id)
        refuse_fresh_changes(there, there.config.loaded_at)  # an agent may have changed them for a moment
        enqueue(there, build_request(args, there))
