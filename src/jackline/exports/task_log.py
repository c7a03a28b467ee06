"""Appends to `logs/<task>/task.log`: one line when a run starts or stops, for `tail -f`. It is a log, never read again.

Writers in several processes append one line each with one write; a file that has grown is put aside.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.errors import disk_error
from jackline.exports.run_folder import make_path_component
from jackline.files import make_private_folder
from jackline.formatting import format_cost, format_duration, format_iso, make_printable

if TYPE_CHECKING:
    from jackline.domain.records import Run

NAME = "task.log"
OLD_NAME = "task.log.1"
_MOST_BYTES = 1_000_000
_MOST_LINE = 500
_LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  ")


def build_task_log_path(home: str, task: str) -> str:
    """The log of a task."""
    return os.path.join(home, "logs", make_path_component(task), NAME)


def describe_start(run: Run) -> str:
    """The line of an attempt that begins."""
    return f"{run.id}  {run.agent}  {'resumed' if run.status.attempt else 'started'}"


def describe_stop(run: Run) -> str:
    """The line of an attempt that is over: how the run ended, or what it waits for."""
    status = run.status
    state = f"{status.state}: {status.reason or status.failure}" if status.reason or status.failure else status.state
    cost = format_cost(status.spent.usd_micros, status.spent.usd_estimated)
    return f"{run.id}  {run.agent}  {state}  {format_duration(status.spent.wall_ms)}  {cost}"


def append_line(home: str, task: str, text: str, at: int) -> None:
    """Append a line with its time; StoreError if it cannot be written."""
    path = build_task_log_path(home, task)
    line = f"{format_iso(at, 'seconds')}  {make_printable(text)[:_MOST_LINE]}\n".encode("utf-8", "replace")
    make_private_folder(os.path.dirname(path))
    try:
        if os.path.lexists(path) and os.lstat(path).st_size > _MOST_BYTES:
            os.replace(path, os.path.join(os.path.dirname(path), OLD_NAME))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise disk_error(error, path) from None


def is_task_log(path: str) -> bool:
    """Whether a file is such a log: its name alone proves nothing."""
    if os.path.basename(path) not in {NAME, OLD_NAME} or os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return _LINE.match(file.read(64)) is not None
