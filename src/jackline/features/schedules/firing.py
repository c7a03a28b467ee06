"""Fires what is due: records due times, creates their runs, and notices runs that did not end in time.

Every step is written before the next one begins, and any process of the home can take the next one: the id of a run
follows from its schedule and due time, so that a run that exists already is found and not created again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.own_files import find_unconfirmed
from jackline.app.service_tasks import ServiceTask
from jackline.cli.stored_args import enqueue_stored_run
from jackline.digests import hash_text
from jackline.domain.states import TERMINAL
from jackline.errors import JacklineError, StoreError, UsageError
from jackline.features.schedules.fire_reports import find_ping_url
from jackline.features.schedules.schedule_model import (
    CANCEL_OLD,
    ENDED,
    FAILED,
    NOT_WANTED,
    OVERDUE,
    QUEUE,
    SKIPPED,
    STARTED,
    find_next_due,
    is_overdue,
)
from jackline.features.schedules.schedule_store import ScheduleStore, build_schedule_notice
from jackline.formatting import DAY_MS, format_duration, format_iso
from jackline.store.parts import PingEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.domain.records import SubjectNotice
    from jackline.features.schedules.schedule_model import Fire, Schedule

CONDITION_SECONDS = 600.0
_CLAIM_MS = 60_000
_TAIL = 1_000
_HELD = "waits until you confirm a change: jackline trust"
_LONGEST_PAUSE_S = 30.0
_LOOK_SECONDS = 5.0  # for the commands of --only-if, without a signal


def list_service_tasks(_home: Home) -> list[ServiceTask]:
    """The tasks of a service for schedules. Commands of --only-if may take long, so they have a separate thread."""
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


def create_run(home: Home, schedule: Schedule, fire: Fire) -> None:
    """Put the run of a fire into the queue, with the settings, task and files as they are now."""
    enqueue_stored_run(home, schedule.definition.workspace, schedule.definition.run, fire.run_id)


class ScheduleRunner:
    """What one process does for the schedules of its home."""

    def __init__(
        self,
        home: Home,
        owner: str,
        now: Callable[[], int] = clock.wall_ms,
        create: Callable[[Home, Schedule, Fire], None] = create_run,
    ) -> None:
        """`owner` names the process on the fires that it has taken."""
        self._home, self._owner, self._now, self._create = home, owner, now, create
        self._schedules = ScheduleStore(home.store())

    def record_due(self) -> int:
        """Record what is due in every schedule; the number of fires that are to start."""
        total = 0
        for schedule in self._schedules.list_all():
            if self._is_due(schedule):
                total += len(self._schedules.record_due(schedule.name, self._now()).fires)
        return total

    def start_runs(self, *, conditional: bool | None = None) -> int:
        """Create the runs of recorded fires, those of each schedule in order; the number of fires that were taken.

        Schedules take turns: one whose condition takes longer than its pauses would keep the others from starting.
        `conditional`: only those with a command of --only-if, which may take long, or only those without one.
        """
        total = 0
        seen: dict[str, int] = {}  # the due time of the last fire of each schedule that was looked at
        while fires := [fire for fire in self._schedules.list_next() if seen.get(fire.schedule) != fire.due_at]:
            for fire in fires:
                seen[fire.schedule] = fire.due_at
                schedule = self._schedules.find(fire.schedule)
                has_condition = schedule is not None and bool(schedule.definition.only_if)
                if conditional not in {None, has_condition}:
                    continue
                # To take it again would keep it from another home of the same database.
                if fire.reason == _HELD and find_unconfirmed(self._home) is not None:
                    continue
                claim_ms = _CLAIM_MS + (round(CONDITION_SECONDS * 1000) if has_condition else 0)
                if self._schedules.take(fire, self._owner, self._now(), claim_ms):
                    self._start(schedule, fire)
                    total += 1
        return total

    def has_work(self) -> bool:
        """Whether a schedule is due, or a recorded fire waits for its run."""
        return any(self._is_due(one) for one in self._schedules.list_all()) or bool(self._schedules.list_next())

    def _is_due(self, schedule: Schedule) -> bool:
        """Whether the schedule has a due time that is not recorded."""
        now, since = self._now(), schedule.checked_until
        if schedule.paused_at is not None or now <= since:
            return False
        due = self._find_next_due(schedule, since)
        return due is not None and due <= now

    def _find_next_due(self, schedule: Schedule, after: int) -> int | None:
        """The first due time after a time; a schedule whose zone an update of the machine removed stops no other."""
        try:
            return find_next_due(schedule.definition.cron, schedule.definition.zone, after)
        except UsageError as error:
            now = self._now()
            body = f"{error}; nothing fires until you remove the schedule and add it again"
            title = f"schedule {schedule.name}: cannot fire"
            day = now - now % DAY_MS
            notice = build_schedule_notice(schedule, "failed", day, now, title=title, body=body)
            self._home.store().notices.add(notice)
            return None

    def start_one(self, name: str) -> Fire:
        """Fire a schedule for a person, and return the fire with its result."""
        schedule, at = self._schedules.get(name), self._now()
        while (fire := self._schedules.add_manual(name, at)) is None:
            at += 1
        if self._schedules.take(fire, self._owner, at, _CLAIM_MS + round(CONDITION_SECONDS * 1000)):
            self._start(schedule, fire)
        return self._schedules.find_fire_of_run(fire.run_id) or fire

    def _start(self, schedule: Schedule | None, fire: Fire) -> None:
        """Create the run of a fire that this process has taken, or write why there is none."""
        if self._schedules.find_outcome(fire.run_id) is not None:  # a process died after it had created the run
            self._schedules.mark_started(fire, self._now())
            return
        if schedule is None:
            self._schedules.set_state(fire, FAILED, self._now(), "the schedule was removed")
            return
        if find_unconfirmed(self._home) is not None:  # no run is created now; the fire is not lost for that
            self._schedules.release(fire, self._now(), _HELD)
            self._home.wake_services()  # one of another home may start it
            return
        try:
            if self._is_held_back(schedule, fire) or not self._is_wanted(schedule, fire):
                return
            # A condition may have outlasted the claim, such as on a machine that slept.
            if not self._schedules.extend_claim(fire, self._owner, self._now(), _CLAIM_MS):
                return
            self._create(self._home, schedule, fire)
        except StoreError:
            raise  # the service tries again
        except JacklineError as error:
            self._fail(schedule, fire, str(error))
            return
        self._schedules.mark_started(fire, self._now())

    def _is_held_back(self, schedule: Schedule, fire: Fire) -> bool:
        """Whether runs of earlier fires that have not ended keep this one from starting."""
        unfinished = self._schedules.list_unfinished_runs(fire)
        if not unfinished:
            return False
        if schedule.definition.overlap == QUEUE:
            self._schedules.release(fire, self._now(), f"waits for run {unfinished[0]}")
            return True
        if schedule.definition.overlap == CANCEL_OLD:
            for run_id in unfinished:
                run = self._home.store().runs.get(run_id)
                if run is not None and run.status.state not in TERMINAL:
                    self._home.cancel(run)
            return False
        self._schedules.set_state(fire, SKIPPED, self._now(), f"run {unfinished[0]} has not ended")
        return True

    def _is_wanted(self, schedule: Schedule, fire: Fire) -> bool:
        """Whether the command of --only-if succeeds in the workspace; a failure is recorded with its output."""
        command = schedule.definition.only_if
        if not command:
            return True
        from jackline.engine import run_env
        from jackline.engine.command_runner import run_command

        workspace = schedule.definition.workspace
        if not os.path.isdir(workspace):
            self._fail(schedule, fire, f"{workspace} is not a folder")
            return False
        # Agents write what is in a workspace, such as the tests that it runs: it may not decide as a person.
        tag = run_env.build_process_tag(self._home.store().secret, fire.run_id)
        env = {**os.environ, **tag, run_env.RUN: fire.run_id, run_env.HOME: self._home.path}
        done = run_command(command, cwd=workspace, env=env, timeout_s=CONDITION_SECONDS, output_limit=_TAIL)
        if done.exit_code == 0 and not done.timed_out:
            return True
        if done.exit_code in {126, 127}:  # the shell's words for a command that cannot be started
            output = done.stderr_tail.decode("utf-8", "replace").strip()
            self._fail(schedule, fire, f"the command of --only-if cannot be started: {output}")
            return False
        ending = f"timed out after {CONDITION_SECONDS:g} s" if done.timed_out else f"exit {done.exit_code}"
        if done.signal is not None and not done.timed_out:
            ending = f"ended by signal {done.signal}"
        output = (done.stdout_tail + done.stderr_tail)[-_TAIL:].decode("utf-8", "replace").strip()
        # The condition was evaluated, so the schedule works; a command that was killed shows nothing.
        ping = PingEvent.SUCCESS if done.signal is None and not done.timed_out else None
        why = f"{ending}: {output}".removesuffix(": ")
        self._schedules.set_state(fire, NOT_WANTED, self._now(), why, ping=self._select_ping(schedule, ping))
        return False

    def _select_ping(self, schedule: Schedule, event: PingEvent | None) -> PingEvent | None:
        """The event if the schedule has an address."""
        return event if find_ping_url(self._home, schedule) else None

    def _fail(self, schedule: Schedule, fire: Fire, why: str) -> None:
        due = format_iso(fire.due_at, "seconds")
        title, body = f"schedule {schedule.name}: not started", f"due at {due}: {why}"
        day = fire.due_at - fire.due_at % DAY_MS  # the same mistake is reported once a day, not every minute
        notice = build_schedule_notice(schedule, "failed", day, self._now(), title=title, body=body)
        notice = notice._replace(id=f"{notice.id}:{hash_text(why)[:8]}")
        ping = self._select_ping(schedule, PingEvent.FAIL)
        self._schedules.set_state(fire, FAILED, self._now(), why, notice, ping)

    def settle_open(self) -> int:
        """Close the fires whose runs have ended, and report those that are overdue; how many are."""
        known = {schedule.name: schedule for schedule in self._schedules.list_all()}
        overdue = 0
        for fire in self._schedules.list_started():
            outcome = self._schedules.find_outcome(fire.run_id)
            if outcome is not None and outcome.state in TERMINAL:
                self._schedules.set_state(fire, ENDED, self._now(), outcome.state)
                continue
            schedule = known.get(fire.schedule)
            if schedule is None or not is_overdue(schedule.definition, fire, self._now()):
                continue
            overdue += 1
            notice = self._build_overdue(schedule, fire, "not started" if outcome is None else outcome.state)
            if fire.state == STARTED:
                self._schedules.set_state(fire, OVERDUE, self._now(), notice=notice)
        for fire in self._schedules.list_next():  # those behind it are not reported until they are the next
            schedule = known.get(fire.schedule)
            if schedule is not None and is_overdue(schedule.definition, fire, self._now()):
                overdue += 1
                self._home.store().notices.add(self._build_overdue(schedule, fire, "not started"))
        return overdue

    def _build_overdue(self, schedule: Schedule, fire: Fire, state: str) -> SubjectNotice:
        expected = format_duration(schedule.definition.expect_ms)
        body = f"run {fire.run_id}, due at {format_iso(fire.due_at, 'seconds')}, is {state}: expected within {expected}"
        title = f"schedule {schedule.name}: overdue"
        return build_schedule_notice(schedule, "overdue", fire.due_at, self._now(), title=title, body=body)

    def find_pause(self) -> float:
        """The seconds until something is due, at most half a minute: a clock may be set."""
        now = self._now()
        waits = [_LONGEST_PAUSE_S * 1000]
        for schedule in self._schedules.list_all():
            if schedule.paused_at is None:
                due = self._find_next_due(schedule, max(now, schedule.checked_until))
                waits.append((due or now + 10**9) - now)
        return max(0.0, min(waits) / 1000)
