"""`jackline serve`: works on queued, due and lost runs until it is stopped."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from typing import TYPE_CHECKING, Self

from jackline import clock
from jackline.cli.signals import SignalListener
from jackline.diagnostic_log import LOG
from jackline.errors import JacklineError, UsageError
from jackline.features.service.service_runner import Service, ServiceOptions
from jackline.formatting import format_iso, make_printable, make_readable, pluralize, to_datetime

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ()
NEEDS_PROJECT = False  # each run has the settings of its project
_PROBLEMS = frozenset({"problem", "cannot_start", "held", "died"})
_SIGNALLED, _RUN_LEFT, _FINISHED = "signalled", "run left", "finished"
_STOP_SECONDS = 25.0  # after the drain and the grace period; a little less than systemd waits
_LAST_WORDS_SECONDS = 1.0


def configure(parser: CommandParser) -> None:
    parser.add_setting("slots")
    parser.add_setting("env_file", "FILE")
    parser.add_argument(
        "--drain",
        "--drain-seconds",
        dest="drain_seconds",
        metavar="SECONDS",
        help="when stopped, let runs continue for this long before they are interrupted (default: drain_seconds)",
    )
    parser.add_argument("--once", action="store_true", help="do what is due now, then exit")
    parser.add_argument(
        "--print-service", action="store_true", help="print a systemd user unit for this home, and exit"
    )
    parser.add_argument("--quiet", action="store_true", help="print problems only")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app import diagnostics
    from jackline.app.environment import read_home_environ
    from jackline.app.own_files import refuse_fresh_changes, refuse_unconfirmed_settings

    if args.print_service:
        return _print_service(args, home, out)
    is_under_systemd = bool(os.environ.get("JOURNAL_STREAM"))
    log = ServiceLog(out, quiet=args.quiet, times=not is_under_systemd)
    options = ServiceOptions(slots=home.config.get_int("slots"), poll_seconds=home.config.get_float("poll_seconds"))
    if args.env_file is not None:
        read_home_environ(home.config)  # ConfigError if it cannot be used; that of the settings is checked by each run
    home.create()
    home.migrate()
    refuse_unconfirmed_settings(home)
    refuse_fresh_changes(home, home.config.loaded_at)
    diagnostics.start_log(home)
    events: queue.SimpleQueue[str] = queue.SimpleQueue()
    drain_seconds = home.config.get_float("drain_seconds")
    deadline = StopDeadline(drain_seconds, home.config.get_float("grace_seconds"), log)

    def stop() -> None:
        deadline.start()
        events.put(_SIGNALLED)

    def stop_now() -> None:
        for _ in range(2):  # like a second signal: without a drain
            stop()

    with deadline, SignalListener(lambda _number: stop()):
        service = Service(home, options, log.report, lambda: events.put(_RUN_LEFT), stop_now)
        service.open()
        slots = pluralize(options.slots, "slot")
        log.report("started", f"service {service.id} started: {home.path}, {slots}", service=service.id, home=home.path)
        try:
            if args.once:
                service.start_once(lambda: events.put(_FINISHED))
            else:
                service.start()
            _wait_and_drain(service, events, drain_seconds, log)
        finally:
            service.close()
            log.report("stopped", f"service {service.id} stopped", service=service.id)
    return 1 if service.has_failed else 0


def _print_service(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.service.user_units import build_service_unit, describe_lost_variables

    if args.once:
        raise UsageError("--once is for cron: a unit that systemd starts again whenever it ends would never rest")
    env_file = None if args.env_file is None else os.path.abspath(os.path.expanduser(args.env_file))
    given = {"--slots": args.slots, "--drain": args.drain_seconds, "--env-file": env_file}
    flags = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    out.print_line(build_service_unit(home, os.environ, [*flags, *(["--quiet"] if args.quiet else [])]).rstrip("\n"))
    for line in describe_lost_variables(home, os.environ):
        out.print_note(make_printable(line))
    return 0


def _wait_and_drain(service: Service, events: queue.SimpleQueue[str], drain_seconds: float, log: ServiceLog) -> None:
    """Wait for a signal, then for the runs; a second signal interrupts them at once. `--once` may end before one."""
    while (event := events.get()) != _SIGNALLED:
        if event == _FINISHED:
            return
    log.report("stopping", "stopping: no new run is started", service=service.id)
    service.refuse_work()
    until = time.monotonic() + drain_seconds
    while service.is_busy and (left := until - time.monotonic()) > 0:
        try:
            if events.get(timeout=min(left, threading.TIMEOUT_MAX)) == _SIGNALLED:
                break
        except queue.Empty:
            break
    service.interrupt_runs()
    while service.is_busy:
        events.get()


class StopDeadline:
    """Ends the process if it does not stop in time after a signal: a database that keeps silent is waited for.

    The wardens then end the agents, and the next service takes up the runs.
    """

    def __init__(self, drain_seconds: float, grace_seconds: float, log: ServiceLog) -> None:
        """Start nothing yet."""
        self._drain_seconds, self._seconds, self._log = drain_seconds, grace_seconds + _STOP_SECONDS, log
        self._timers: list[threading.Timer] = []

    def start(self) -> None:
        """A signal has arrived; from the second one on there is no drain."""
        seconds = self._seconds + (0.0 if self._timers else self._drain_seconds)
        self._timers.append(threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._end_process))
        self._timers[-1].daemon = True
        with contextlib.suppress(RuntimeError):  # the system has no thread left, which may be why the service ends
            self._timers[-1].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for timer in self._timers:
            timer.cancel()

    def _end_process(self) -> None:
        text = (
            "ended before it had stopped, because something does not answer, such as the database; "
            "the next service takes up its runs"
        )
        # In a thread, because the output may be what does not answer.
        report = threading.Thread(target=lambda: self._log.report("problem", text, error=text), daemon=True)
        report.start()
        report.join(_LAST_WORDS_SECONDS)
        os._exit(1)


class ServiceLog:
    """Prints a line or JSON object for each event; with `quiet`, only problems. Several threads may report at once."""

    def __init__(self, out: Output, *, quiet: bool, times: bool) -> None:
        """`times`: whether each line begins with the time; systemd's journal has its own."""
        self._out, self._quiet, self._times = out, quiet, times
        self._lock = threading.Lock()

    def report(self, event: str, text: str, **facts: object) -> None:
        """Report one event: a word, a line for people, and facts for --json."""
        at = clock.wall_ms()
        LOG.info(f"service: {text}")
        if self._quiet and event not in _PROBLEMS:
            return
        with self._lock, contextlib.suppress(JacklineError):  # a full disk under the output stops no run
            if self._out.json:
                self._out.print_json({"event": event, "at": format_iso(at), **facts})
            else:
                self._out.print_line(
                    f"{to_datetime(at).astimezone():%Y-%m-%d %H:%M:%S} {make_readable(text)}"
                    if self._times
                    else make_readable(text)
                )
