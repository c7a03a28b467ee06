"""`jackline heartbeat`, for cron: logs that the machine is up, delivers, starts what is due, reports what is late."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.own_files import refuse_fresh_changes, refuse_unconfirmed_settings
from jackline.engine.detached import DetachedProcess
from jackline.engine.settings import new_id
from jackline.errors import JacklineError, Refused
from jackline.exports.task_log import append_line, build_task_log_path
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.pull_requests.poll_task import has_due_pull_request
from jackline.features.schedules.firing import ScheduleRunner
from jackline.features.service import presence
from jackline.features.service.dispatcher import list_candidates
from jackline.features.service.service_store import ServiceStore, build_death_notice
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.service.service_store import ServiceRecord

INSIDE_RUN = ()
NEEDS_PROJECT = False
TASK = "heartbeat"
_MOST_STUCK = 100
_SILENT_MS = 120_000  # four times as long as a service takes at most to show that it lives
_ANSWER_SECONDS, _LOOK_SECONDS = 5.0, 0.1


def configure(parser: CommandParser) -> None:
    parser.epilog = "Exit code 1 if something is overdue: a scheduled run, a dead or silent service, a stuck notice."


def execute(_args: Namespace, home: Home, out: Output) -> int:
    home.create()
    states, problems = list[str](), list[str]()
    for step, found in ((_keep_going, states), (_find_problems, problems)):  # one that fails stops no other
        try:
            found.extend(step(home, out))
        except JacklineError as error:
            problems.append(str(error))
    state, problems = "".join(states) or "idle", list(dict.fromkeys(problems))
    line = "  ".join((state, *(problems or ["ok"])))
    try:
        append_line(home.path, TASK, line, clock.wall_ms())
    except JacklineError:
        path = build_task_log_path(home.path, TASK)
        problems.append(f"{path} cannot be written: check the disk and the permissions of the home")
    if out.json:
        out.print_json({"state": state, "overdue": problems})
    else:
        for problem in problems:
            out.print_line(make_printable(problem))
    return 1 if problems else 0


def _keep_going(home: Home, out: Output) -> Iterator[str]:
    """Wake the service; without one, deliver here, and let a process in the background do what is due."""
    if home.is_new:
        return
    home.migrate()
    if home.has_service():
        home.wake_services()
        yield "service"
        return
    from jackline.features.notify.after_work import deliver_after_work
    from jackline.features.notify.delivery import close_removed

    at = clock.wall_ms()
    for record in ServiceStore(home.store()).list_open(clock.host_name()):
        if presence.is_dead(home.path, record.id):
            home.store().notices.add(build_death_notice(record, "start `jackline serve` again", at))
    deliver_after_work(home)
    with suppress(Refused):  # a service closes them only with confirmed settings, too
        refuse_unconfirmed_settings(home)
        refuse_fresh_changes(home, home.config.loaded_at)
        close_removed(home)
    runner = ScheduleRunner(home, f"heartbeat-{new_id()}")
    if not (runner.has_work() or list_candidates(home, at) or has_due_pull_request(home, at)):
        return
    argv = (sys.executable, "-P", "-m", "jackline", "serve", "--once", "--quiet", "--home", home.path)
    try:
        process = DetachedProcess(argv, os.environ, home.path, os.devnull)
    except OSError as error:
        raise JacklineError(f"{error.filename}: {error.strerror}") from None
    process.leave()
    if out.stdout.is_terminal:  # cron mails every word
        out.print_note(f"working in the background, pid {process.pid}")
    yield f"started {process.pid}"


def _find_problems(home: Home, _out: Output | None = None) -> Iterator[str]:
    if home.is_new:
        return
    runner = ScheduleRunner(home, f"heartbeat-{new_id()}")
    if overdue := runner.settle_open():
        yield f"{pluralize(overdue, 'scheduled run')} overdue: jackline schedule list"
    services = ServiceStore(home.store())
    for record in services.list_open(clock.host_name()):
        is_dead = presence.is_dead(home.path, record.id)
        if is_dead:
            yield f"service {record.id} (pid {record.pid}) has died: start `jackline serve` again"
        elif is_dead is False and not _is_responding(services, record):
            yield f"service {record.id} (pid {record.pid}) does not respond: continue or restart it"
    stuck = DeliveryStore(home.store()).list_stuck(clock.wall_ms(), limit=_MOST_STUCK)
    pings = sum(one.is_ping for one in stuck)
    counts = (("notice", len(stuck) - pings), ("ping", pings))
    if found := " and ".join(pluralize(count, word) for word, count in counts if count):
        yield f"{found} not delivered: jackline notices --stuck"


def _is_responding(services: ServiceStore, record: ServiceRecord) -> bool:
    """Whether a service does its work; one that was woken after the machine slept has a moment to show it."""
    until = time.monotonic() + _ANSWER_SECONDS
    while clock.wall_ms() - record.seen_at > _SILENT_MS:
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_SECONDS)
        record = next((one for one in services.list_unended() if one.id == record.id), record)
    return True
