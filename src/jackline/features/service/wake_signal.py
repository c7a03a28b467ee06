"""Wakes services when there is something new: through a pipe of each service, or NOTIFY of PostgreSQL.

A signal carries nothing: who is woken looks into the store. A signal that is lost only costs the time until the next
look, so that sending never waits and never fails.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import TYPE_CHECKING

from jackline.diagnostic_log import LOG
from jackline.domain.limits import compute_wait
from jackline.errors import StoreError
from jackline.features.service.presence import list_pipes
from jackline.features.service.service_store import ServiceStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home

_READ_BYTES = 4096
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


def wake_services(home: Home) -> None:
    """Wake every service of the home; with PostgreSQL, every service of the database."""
    if home.has_database_server:
        with contextlib.suppress(StoreError):  # what was written is found by the next look
            ServiceStore(home.store()).notify_listeners()
        return
    for path in list_pipes(home.path):
        notify_pipe(path)


def notify_pipe(path: str) -> None:
    """Write into the pipe of a service; do nothing if it has no reader or is full."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.write(descriptor, b"\n")
        finally:
            os.close(descriptor)


class WakeCondition:
    """Wakes the threads of this process; each waits for what came after it last looked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._is_stopping = False

    @property
    def count(self) -> int:
        """How often it was notified."""
        return self._count

    @property
    def is_stopping(self) -> bool:
        """Whether the threads have to end."""
        return self._is_stopping

    def notify(self) -> None:
        """Wake all threads."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Wake all threads and make them end."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def wait(self, since: int, seconds: float) -> bool:
        """Wait until it was notified after `since`, or for some seconds; True if the threads have to end."""
        with self._changed:
            timeout = min(max(0.0, seconds), threading.TIMEOUT_MAX)
            self._changed.wait_for(lambda: self._is_stopping or self._count != since, timeout)
            return self._is_stopping


class PipeListener:
    """Notifies the condition whenever a process writes into the pipe of this service."""

    def __init__(self, path: str, notify: Callable[[], None]) -> None:
        """Open the pipe, and start to listen."""
        self._notify = notify
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # without it, every end is reported
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, name="wake-pipe", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            select.select([self._reader], [], [])
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, _READ_BYTES)
            if self._is_closed:
                return
            self._notify()

    def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"\n")
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)


class PostgresListener:
    """Notifies the condition at each NOTIFY, over a separate connection, which it opens again after an outage."""

    def __init__(self, address: str, notify: Callable[[], None]) -> None:
        """Start to connect and listen; the first connection may come later than this returns."""
        self._address, self._notify = address, notify
        self._wake_reader, self._wake_writer = os.pipe()
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, name="wake-listen", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        from jackline.store.postgres_listen import NotifyConnection

        failures = 0
        while not self._is_closed:
            try:
                with NotifyConnection(self._address) as connection:
                    failures = 0
                    self._notify()  # a NOTIFY may have been missed in the meantime
                    while connection.wait(self._wake_reader):
                        self._notify()
                    return
            except StoreError as error:
                LOG.warning(f"wake signals of PostgreSQL are not received: {error}")
                self._pause(compute_wait(_FIRST_PAUSE_S, failures, _LONGEST_PAUSE_S))
                failures += 1

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_closed and (left := until - time.monotonic()) > 0:
            select.select([self._wake_reader], [], [], left)

    def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        os.write(self._wake_writer, b"\n")
        self._thread.join()
        os.close(self._wake_reader)
        os.close(self._wake_writer)
