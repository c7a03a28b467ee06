"""Rebuilds a derived file once for many changes: one process builds, one waits, all others return at once.

The waiting process has not read the data yet, so it will see the changes of all that returned: no change is lost, and
no process builds for others all the time. A killed process holds no lock. It does not know what is built.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.errors import JacklineError
from jackline.files import lock_descriptor, open_lock, report_path

if TYPE_CHECKING:
    import threading

PATIENCE_S = 2.0
PAUSE_S = 0.5
_POLL_S = 0.002
_STALE_WAIT_S = 0.2  # how long to wait for a lock that is held too long already


class RebuildBlocked(JacklineError):
    """{detail} is being written by a process that makes no progress and may be stopped: end it; the next change writes the file"""  # noqa: D400, E501 - the message


def rebuild_once(lock: str, build: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Build, or return False if another process is about to. Call it after the change is committed.

    `lock` is the path of a file beside the built one; a second lock file ends with `.next`. Raises RebuildBlocked if
    the building process does not finish.
    """
    turn = _try_lock(f"{lock}.next")
    if turn is None and _lock_age_s(f"{lock}.next") <= 2 * patience_s:
        return False
    try:
        held = _wait_for_lock(lock, patience_s)
    finally:
        if turn is not None:  # else a stopped process holds it
            os.close(turn)  # processes that come from now on must build again
    _build_and_close(build, held)
    return True


def rebuild_now(lock: str, build: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Build after any process that is building; the file is up to date when this returns."""
    _build_and_close(build, _wait_for_lock(lock, patience_s))


def _build_and_close(build: Callable[[], object], held: int) -> None:
    try:
        build()
    finally:
        os.close(held)


def _wait_for_lock(lock: str, patience_s: float) -> int:
    """Poll for the lock: flock has no timeout, and its holder may be stopped."""
    started = time.monotonic()
    while (held := _try_lock(lock)) is None:
        waited = time.monotonic() - started
        if waited > patience_s or (waited > _STALE_WAIT_S and _lock_age_s(lock) > patience_s):
            raise RebuildBlocked(lock.removesuffix(".lock"))
        time.sleep(_POLL_S)
    return held


def _lock_age_s(lock: str) -> float:
    """Return how long the lock has been held; it may have a new holder by now."""
    with report_path(lock):
        return abs(time.time() - os.stat(lock).st_mtime)


def _try_lock(lock: str) -> int | None:
    with report_path(lock):
        descriptor = open_lock(lock)
        try:
            if lock_descriptor(descriptor):
                os.utime(descriptor)
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
    os.close(descriptor)
    return None


class DelayedRebuild:
    """Rebuilds in a thread, for long-lived processes: soon after a request, and always at the end.

    `build` reports its own errors: nothing above the thread can.
    """

    def __init__(self, build: Callable[[], object], pause_s: float = PAUSE_S, *, at_once: bool = False) -> None:
        """Start no thread before the first request. `at_once`: pause only between two builds."""
        import threading

        self._build, self._pause_s, self._at_once = build, pause_s, at_once
        self._next_build_at = 0.0
        self._requested, self._ending = threading.Event(), threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def request_build(self) -> None:
        """Request a build; callable from any thread, never waits."""
        import threading

        self._requested.set()
        with self._start_lock:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._run_builds, name="jackline-views", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Build what is still requested, and end the thread."""
        with self._start_lock:
            self._ending.set()
            thread = self._thread
        if thread is not None:
            self._requested.set()  # wakes the thread for a last, cheap build
            thread.join()

    def _run_builds(self) -> None:
        ending = False
        while not ending:
            self._requested.wait()
            left = self._next_build_at - time.monotonic()
            self._ending.wait(max(0.0, left) if self._at_once else self._pause_s)
            self._requested.clear()  # before building: requests during a build cause another one
            ending = self._ending.is_set()  # after that: a later close() wakes it again
            self._build()
            self._next_build_at = time.monotonic() + self._pause_s


@contextmanager
def delayed_rebuild(
    build: Callable[[], object], pause_s: float = PAUSE_S, *, at_once: bool = False
) -> Iterator[DelayedRebuild]:
    """Yield a DelayedRebuild that is closed at the end of the block."""
    worker = DelayedRebuild(build, pause_s, at_once=at_once)
    try:
        yield worker
    finally:
        worker.close()
