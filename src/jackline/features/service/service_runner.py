"""Runs a service: its presence, the dispatcher and the tasks of the features, each task in a separate thread."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.service_tasks import ServiceTask
from jackline.app.wakeups import find_next_wake
from jackline.diagnostic_log import LOG
from jackline.domain.limits import compute_wait
from jackline.engine.settings import new_id
from jackline.errors import JacklineError, StoreError
from jackline.extensions import call_hook
from jackline.features.service import presence
from jackline.features.service.dispatcher import Dispatcher
from jackline.features.service.service_store import (
    ServiceRecord,
    ServiceStore,
    build_death_notice,
    describe_death,
)
from jackline.features.service.settings_watch import SettingsWatch
from jackline.features.service.wake_signal import PipeListener, PostgresListener, WakeCondition, wake_services
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.features.service.dispatcher import EventReporter

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0  # of a task that failed
_RENEW_SECONDS = 30.0
_UNSEEN_MS = 600_000  # after which a service is dead whose lock is not in this home
_JOIN_SECONDS = 10.0
_PRESENCE = "presence"


class ServiceOptions(NamedTuple):
    """The options of a service."""

    slots: int
    poll_seconds: float


class _TaskError(NamedTuple):
    text: str
    calls: int  # that succeeded before


class TaskContext:
    """What a task gets; see `app.service_tasks`."""

    def __init__(
        self,
        home: Home,
        service_id: str,
        wake: WakeCondition,
        *,
        once: bool,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """`is_wanted`: whether the task still belongs to the settings; one that does not is being stopped."""
        self.home, self.service_id = home, service_id
        self._wake, self._once, self._is_wanted = wake, once, is_wanted
        self._seen = wake.count

    @property
    def is_stopping(self) -> bool:
        """Whether the service is being stopped."""
        return self._wake.is_stopping or not self._is_wanted()

    def wait(self, seconds: float) -> bool:
        """Wait until something of the home changes, at most for some seconds; True if the service is being stopped."""
        if self._once or self.is_stopping:
            return True
        self._wake.wait(self._seen, seconds)
        self._seen = self._wake.count
        return self.is_stopping


class _RunningTask:
    """A task with a thread of its own."""

    def __init__(self, task: ServiceTask, version: int | None) -> None:
        """`version`: of the settings with which the task ends; None if it is the same with all."""
        self.task, self.version = task, version
        self.round = 0  # of `--once`: the last one in which it has looked
        self.has_ended = False


class Service:
    """One service of a home."""

    def __init__(
        self,
        home: Home,
        options: ServiceOptions,
        report: EventReporter,
        on_idle: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        """`on_idle` is called when the work on a run has ended, `on_lost` when the service has to end; from threads."""
        self.id = new_id()
        self._home, self._options, self._report = home, options, report
        self._on_idle, self._on_lost = on_idle, on_lost
        self._wake = WakeCondition()
        # of `--once`:
        self._progress = WakeCondition()  # a task has looked, or a run has ended
        self._round = 0  # in each one every task looks
        self._started = 0  # the runs until the end of the last round
        self._is_ending = False
        self._dispatcher = Dispatcher(home, options.slots, report, self._on_run_left)
        self._presence: presence.Presence | None = None
        self._listener: PipeListener | PostgresListener | None = None
        self._updates: AbstractContextManager[object] | None = None
        self._threads: list[threading.Thread] = []
        self._tasks: list[_RunningTask] = []
        self._settings = SettingsWatch(home)
        self._database_file: tuple[int, int] | None = None
        self.has_failed = False  # whether `--once` or a task of it failed, or the database is gone or cannot be reached

    @property
    def is_busy(self) -> bool:
        """Whether it works on a run."""
        return self._dispatcher.is_busy

    # starting

    def open(self) -> None:
        """Become visible to other processes, and record the service."""
        self._home.store(create=True)
        self._database_file = self._identify_database()
        self._presence = presence.Presence(self._home.path, self.id)
        at = clock.wall_ms()
        record = ServiceRecord(
            id=self.id,
            host=clock.host_name(),
            boot=clock.boot_id(),
            pid=os.getpid(),
            slots=self._options.slots,
            started_at=at,
            seen_at=at,
        )
        try:
            ServiceStore(self._home.store()).add(record)
        except BaseException:
            self._presence.close()
            raise
        self._updates = self._home.update_in_background()
        self._updates.__enter__()

    def start(self) -> None:
        """Start the threads."""
        features = self._list_feature_tasks()  # first: no run has begun if they cannot be listed
        self._listen()
        self._start_tasks([ServiceTask(_PRESENCE, self._renew), ServiceTask("dispatch", self._dispatch)])
        self._start_tasks(features, self._settings.version)
        self._start_tasks([ServiceTask("settings", self._reload)])  # the last, because it starts others

    def start_once(self, on_end: Callable[[], None]) -> None:
        """Start a thread that does what is due, then calls `on_end`: the caller can wait for signals meanwhile."""

        def work() -> None:
            try:
                self.run_once()
            except Exception as error:  # noqa: BLE001 - it would only end this thread
                self.has_failed = True
                text = _describe_error(error)
                self._report("problem", text, error=text)
                self._on_lost()  # a run may have begun
            finally:
                on_end()

        self._start_thread("once", work)

    def run_once(self) -> None:
        """Be a service until nothing is left to do."""
        self._round = 1
        self.start()
        self._started = self._finish_round()
        while self._look_again():
            pass
        self._is_ending = True
        if self._presence is not None:
            self._presence.refuse_work()
        # What came before that was left to this service; what one task finds then may be for another.
        while self._look_again() or self._look_again():
            pass

    def _look_again(self) -> bool:
        """Let each task look once more, and end the runs; whether there was one."""
        before = self._started
        self._round += 1
        self._wake.notify()
        self._started = self._finish_round()
        return self._started != before and not self._wake.is_stopping

    def _finish_round(self) -> int:
        """Wait until each task has looked, and no run is active or overtaken; how many were started until then.

        What was overtaken may be tried again then: the next round does so, unless its worktree is still busy.
        """
        while True:
            seen = self._progress.count
            has_looked = all(one.round == self._round or one.has_ended for one in self._tasks)
            runs = self._dispatcher.count_runs()
            if (has_looked and not runs.active and not runs.has_overtaken) or self._progress.is_stopping:
                return runs.started
            self._progress.wait(seen, self._dispatcher.find_next_look(self._options.poll_seconds))

    def _start_tasks(self, tasks: list[ServiceTask], version: int | None = None) -> None:
        """Start a thread for each task; those of a version of the settings end with it."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._tasks = [one for one in self._tasks if not one.has_ended]
        for task in tasks:
            running = _RunningTask(task, version)
            self._start_thread(f"task-{task.name}", partial(self._run_task, running))
            self._tasks.append(running)

    def _start_thread(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)  # afterwards: one that the system cannot start is not waited for

    def _listen(self) -> None:
        if self._home.has_database_server:
            self._listener = PostgresListener(self._home.database, self._wake.notify)
        elif self._presence is not None and os.path.exists(self._presence.pipe_path):
            self._listener = PipeListener(self._presence.pipe_path, self._wake.notify)

    def _list_feature_tasks(self) -> list[ServiceTask]:
        tasks = [task for tasks in call_hook("service_tasks", self._settings.home) for task in tasks]
        self._report_warnings(self._settings.home)
        return tasks

    # stopping

    def refuse_work(self) -> None:
        """Take no run any more."""
        self._dispatcher.refuse_new()
        if self._presence is not None:
            self._presence.refuse_work()

    def interrupt_runs(self) -> None:
        """Let the runs park, so that the next service continues them."""
        self._dispatcher.interrupt_all()

    def close(self) -> None:
        """End the threads, and record that the service was stopped; without its database the next service does that."""
        self._wake.stop()
        self._progress.stop()
        until = time.monotonic() + _JOIN_SECONDS  # for all together: systemd waits not much longer
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._listener is not None:
            self._listener.close()
        if self._updates is not None:
            self._updates.__exit__(None, None, None)
        is_recorded = False
        try:
            ServiceStore(self._home.store()).stop(self.id, clock.wall_ms())
            is_recorded = True
        except StoreError as error:
            self.has_failed = True
            text = f"the next service records that this one was stopped: {error}"
            self._report("problem", text, error=str(error))
        finally:
            if self._presence is not None:
                self._presence.close(leaves_mark=not is_recorded)

    # tasks

    def _run_task(self, running: _RunningTask) -> None:
        """Call the task repeatedly; after an error, restart it with a growing pause."""
        failures, last_error = 0, ""
        while error := self._call_until_error(running):
            if error.text != last_error or error.calls:
                self._report("problem", f"{running.task.name}: {error.text}", task=running.task.name, error=error.text)
            failures = 0 if error.calls else failures + 1
            last_error = error.text
            self._wait(running, compute_wait(_FIRST_PAUSE_S, failures, _LONGEST_PAUSE_S))
        running.has_ended = True
        self._progress.notify()

    def _wait(self, running: _RunningTask, seconds: float, since: int | None = None) -> None:
        """Wait for some seconds, or for a signal after `since`; or until the task has to end or look for a round."""
        until = time.monotonic() + seconds
        while True:
            count = self._wake.count
            if not self._is_wanted(running) or running.round != self._round:
                return
            left = until - time.monotonic()
            is_due = left <= 0 or (since is not None and count != since)
            if is_due and not self._is_resting(running):
                return
            self._wake.wait(count, self._options.poll_seconds if is_due else left)

    def _is_wanted(self, running: _RunningTask) -> bool:
        """Whether the service is not being stopped, and still has the settings of the task."""
        return not self._wake.is_stopping and running.version in {None, self._settings.version}

    def _is_resting(self, running: _RunningTask) -> bool:
        """Whether `--once` is about to end: only its rounds make tasks look, unless a run is active."""
        return self._is_ending and running.task.name != _PRESENCE and not self.is_busy

    def _call_task(self, running: _RunningTask, home: Home) -> float:
        """Let the task look; the seconds until the next look. The first look in a round does not wait."""
        number = self._round
        is_first = running.round != number

        def is_wanted() -> bool:
            return self._is_wanted(running) and (is_first or running.round == self._round)

        try:
            return running.task.run(TaskContext(home, self.id, self._wake, once=is_first, is_wanted=is_wanted))
        except BaseException:
            self.has_failed = self.has_failed or is_first
            raise
        finally:
            running.round = number
            self._progress.notify()

    def _call_until_error(self, running: _RunningTask) -> _TaskError | None:
        """Call the task whenever something changes; None when the service stops, or has other settings."""
        calls = 0
        try:
            with self._settings.home.reopen() as home:
                while self._is_wanted(running):
                    seen = self._wake.count
                    seconds = self._call_task(running, home)
                    calls += 1
                    self._wait(running, seconds, seen)
        except Exception as error:  # noqa: BLE001 - a mistake in one task must not end the service
            return _TaskError(_describe_error(error), calls)
        return None

    def _identify_database(self) -> tuple[int, int] | None:
        """Which file the database is; None if there is none, or it is a server."""
        try:
            found = os.stat(self._home.database)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _reload(self, _context: ServiceContext) -> float:
        """Start the tasks of the features again if a person changed the settings; runs read them anyway.

        A removed or replaced database stays open here, and what others queue in the new one would never be seen.
        """
        if self._database_file != self._identify_database() and not self.has_failed:
            self.has_failed = True
            text = f"{self._home.database} was removed or replaced while this service used it: start it again"
            self._report("problem", text, error=text)
            self._on_lost()
        try:
            is_changed = self._settings.reload()
        except StoreError:
            raise  # an outage is reported once, and the next look tries again
        except JacklineError as error:
            self._report("problem", f"the changed settings are not used: {error}", error=str(error))
            return self._options.poll_seconds
        if is_changed:
            self._wake.notify()  # the tasks of before end
            self._start_tasks(self._list_feature_tasks(), self._settings.version)
            self._report("reloaded", "the settings have changed and are now in use")
        return self._options.poll_seconds

    def _dispatch(self, context: ServiceContext) -> float:
        at = clock.wall_ms()  # before the look: it may not see what is due while it lasts
        context.home.config = self._settings.home.config  # as they are now: this task does not end with those of before
        self._dispatcher.look(context)
        wake_at = find_next_wake(context.home, at)
        seconds = self._options.poll_seconds if wake_at is None else (wake_at - clock.wall_ms()) / 1000
        return self._dispatcher.find_next_look(min(seconds, self._options.poll_seconds))

    def _on_run_left(self) -> None:
        self._wake.notify()
        self._progress.notify()
        self._on_idle()

    def _renew(self, context: ServiceContext) -> float:
        """Show that the service runs, and report others of this host that died."""
        services, at = ServiceStore(context.home.store()), clock.wall_ms()
        services.renew(self.id, at)
        self._report_warnings(self._home)  # those of the thread that updates the dashboard
        for stopped in presence.list_stopped(context.home.path):
            services.stop(stopped, at)
            presence.remove_dead(context.home.path, stopped)
        for record in services.list_open(clock.host_name()):
            if record.id != self.id and _is_dead(context.home.path, record, at):
                notice = build_death_notice(record, f"service {self.id} continues its runs", at)
                if services.report_dead(record.id, notice, at):
                    self._report("died", describe_death(record), service=record.id, pid=record.pid)
                    wake_services(context.home)
                presence.remove_dead(context.home.path, record.id)
        return _RENEW_SECONDS

    def _report_warnings(self, home: Home) -> None:
        for warning in dict.fromkeys(home.warnings):
            self._report("problem", warning, error=warning)
        home.warnings.clear()


def _describe_error(error: Exception) -> str:
    """An error in one line; a mistake of jackline itself is logged with its traceback."""
    if isinstance(error, JacklineError):
        return str(error)
    LOG.error(error)
    return f"unexpected {type(error).__name__}: {error}"


def _is_dead(home_path: str, record: ServiceRecord, at: int) -> bool:
    """Whether a service of this host that was not stopped has died."""
    is_dead = presence.is_dead(home_path, record.id)
    if is_dead is None:  # it belongs to another home on the same database
        return record.boot != clock.boot_id() or at - record.seen_at > _UNSEEN_MS
    return is_dead
