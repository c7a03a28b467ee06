"""Runs a service: its presence, the dispatcher and the tasks of the features, each task in a separate thread."""

from __future__ import annotations

import os
import threading
import time
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

    def begin(self) -> None:
        """A task begins to look: what comes from now on wakes it again."""
        self._seen = self._wake.count


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
        self._dispatcher = Dispatcher(home, options.slots, report, self._on_run_left)
        self._presence: presence.Presence | None = None
        self._listener: PipeListener | PostgresListener | None = None
        self._updates: AbstractContextManager[object] | None = None
        self._threads: list[threading.Thread] = []
        self._settings = SettingsWatch(home)
        self._has_task_threads = False
        self._database_file: tuple[int, int] | None = None
        self.has_failed = False  # whether a task of `--once` failed, or the database is gone

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
        self._listen()
        self._start_all_tasks(ServiceTask("dispatch", self._dispatch))

    def start_once(self, on_end: Callable[[], None]) -> None:
        """Start a thread that does what is due, then calls `on_end`: the caller can wait for signals meanwhile."""

        def work() -> None:
            try:
                self.run_once()
            finally:
                on_end()

        self._threads.append(threading.Thread(target=work, name="once", daemon=True))
        self._threads[-1].start()

    def run_once(self) -> None:
        """Be a service until nothing is left to do."""
        self._listen()
        while self._look_and_work():
            pass
        if self._presence is not None:
            self._presence.refuse_work()
        # What came before that was left to this service.
        while self._look_and_work():
            pass

    def _look_and_work(self) -> bool:
        """Let each task look once, then work on runs until none may start; whether there was one."""
        for task in (ServiceTask("presence", self._renew), *self._list_feature_tasks()):
            self._run_task(task, once=True)
        worked: list[bool] = []

        def work(context: ServiceContext) -> float:
            worked.append(self._dispatch_until_idle(context))
            return 0.0

        self._run_task(ServiceTask("dispatch", work), once=True)
        return any(worked) and not self._wake.is_stopping

    def _start_all_tasks(self, *more: ServiceTask) -> None:
        self._has_task_threads = True
        self._start_tasks([ServiceTask("presence", self._renew), ServiceTask("settings", self._reload), *more])
        self._start_tasks(self._list_feature_tasks(), self._settings.version)

    def _end_all_tasks(self) -> None:
        """End the threads of the tasks, each after what it does just now."""
        self._has_task_threads = False
        self._wake.notify()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _start_tasks(self, tasks: list[ServiceTask], version: int | None = None) -> None:
        """Start a thread for each task; those of a version of the settings end with it."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for task in tasks:
            thread = threading.Thread(
                target=self._run_task, args=(task, version), name=f"task-{task.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

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
        """End the threads, and record that the service was stopped."""
        self._wake.stop()
        until = time.monotonic() + _JOIN_SECONDS  # for all together: systemd waits not much longer
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if self._listener is not None:
            self._listener.close()
        if self._updates is not None:
            self._updates.__exit__(None, None, None)
        try:
            ServiceStore(self._home.store()).stop(self.id, clock.wall_ms())
        finally:
            if self._presence is not None:
                self._presence.close()

    # tasks

    def _run_task(self, task: ServiceTask, version: int | None = None, *, once: bool = False) -> None:
        """Call the task repeatedly; after an error, restart it with a growing pause. `once`: call it once."""
        failures, last_error = 0, ""
        while error := self._call_until_error(task, version, once=once):
            if error.text != last_error or error.calls:
                self._report("problem", f"{task.name}: {error.text}", task=task.name, error=error.text)
            if once:
                self.has_failed = True
                return
            failures = 0 if error.calls else failures + 1
            last_error = error.text
            pause = compute_wait(_FIRST_PAUSE_S, failures, _LONGEST_PAUSE_S)
            if self._wait_for_end(pause, version):
                return

    def _wait_for_end(self, seconds: float, version: int | None) -> bool:
        """Wait for some seconds; True if the threads of the tasks of these settings have to end."""
        until = time.monotonic() + seconds
        seen = self._wake.count
        while self._is_task_wanted(version) and (left := until - time.monotonic()) > 0:
            if self._wake.wait(seen, left):
                return True
            seen = self._wake.count
        return not self._is_task_wanted(version)

    def _is_task_wanted(self, version: int | None) -> bool:
        return self._has_task_threads and version in {None, self._settings.version}

    def _call_until_error(self, task: ServiceTask, version: int | None, *, once: bool) -> _TaskError | None:
        """Call the task whenever something changes; None when the service stops, or has other settings."""
        calls = 0
        try:
            with self._settings.home.reopen() as home:
                context = TaskContext(
                    home,
                    self.id,
                    self._wake,
                    once=once,
                    is_wanted=lambda: once or self._is_task_wanted(version),
                )
                while not context.is_stopping:
                    context.begin()
                    seconds = task.run(context)
                    calls += 1
                    if once or context.wait(seconds):
                        break
        except JacklineError as error:
            return _TaskError(str(error), calls)
        except Exception as error:  # noqa: BLE001 - a mistake in one task must not end the service
            LOG.error(error)
            return _TaskError(f"unexpected {type(error).__name__}: {error}", calls)
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
        self._look(context)
        wake_at = find_next_wake(context.home, at)
        seconds = self._options.poll_seconds if wake_at is None else (wake_at - clock.wall_ms()) / 1000
        return self._dispatcher.find_next_look(min(seconds, self._options.poll_seconds))

    def _look(self, context: ServiceContext) -> int:
        """Start what may start, by the settings as they are now: the dispatcher does not end with those of before."""
        context.home.config = self._settings.home.config
        return self._dispatcher.look(context)

    def _dispatch_until_idle(self, context: ServiceContext) -> bool:
        """Start what may start, until nothing is left to do; whether there was something.

        Meanwhile the tasks of the features run as in every service: other processes rely on it.
        """
        has_worked = False
        try:
            while True:
                seen = self._wake.count
                started = self._look(context)
                if not started and not self._dispatcher.is_busy:
                    return has_worked
                if not has_worked:
                    has_worked = True
                    self._start_all_tasks()
                if self._wake.wait(seen, self._options.poll_seconds):
                    return has_worked
        finally:
            if has_worked:
                self._end_all_tasks()

    def _on_run_left(self) -> None:
        self._wake.notify()
        self._on_idle()

    def _renew(self, context: ServiceContext) -> float:
        """Show that the service runs, and report others of this host that died."""
        services, at = ServiceStore(context.home.store()), clock.wall_ms()
        services.renew(self.id, at)
        self._report_warnings(self._home)  # those of the thread that updates the dashboard
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


def _is_dead(home_path: str, record: ServiceRecord, at: int) -> bool:
    """Whether a service of this host that was not stopped has died."""
    is_dead = presence.is_dead(home_path, record.id)
    if is_dead is None:  # it belongs to another home on the same database
        return record.boot != clock.boot_id() or at - record.seen_at > _UNSEEN_MS
    return is_dead
