"""Many who want the same file written again: one writes, one waits its turn, all others go on at once.

Whoever waits has not looked yet, so it will see what everybody wrote who leaves it to them: no last change is lost,
nobody is kept busy for others, and a killed process holds nothing. It does not know what is built.
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
_LOOK_S = 0.002
_GLANCE_S = 0.2  # how long somebody is waited for who has held the lock for longer than anybody should


class Held(JacklineError):
    """{detail} is being written by a process that does not go on, maybe a stopped one: end that, and it is written with the next change"""  # noqa: D400, E501 - the message


def once(lock: str, build: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Build, unless somebody else is about to; False if it was left to them. Call it after the change is committed.

    `lock` is the path of a file beside the built one; one more is made with `.next` at its end. Held if the one who
    builds does not come to an end.
    """
    turn = _taken(f"{lock}.next")
    if turn is None and _held_s(f"{lock}.next") <= 2 * patience_s:
        return False
    try:
        held = _awaited(lock, patience_s)
    finally:
        if turn is not None:  # else it has one who was stopped while it waited, and who cannot be relied on
            os.close(turn)  # from here on whoever comes has to wait for a look of their own
    _build_and_close(build, held)
    return True


def alone(lock: str, build: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Build for sure, after whoever is building: what is built has been built when this returns."""
    _build_and_close(build, _awaited(lock, patience_s))


def _build_and_close(build: Callable[[], object], held: int) -> None:
    try:
        build()
    finally:
        os.close(held)


def _awaited(lock: str, patience_s: float) -> int:
    """Polled, because flock has no time limit, and a process may be stopped while it builds."""
    begun = time.monotonic()
    while (held := _taken(lock)) is None:
        waited = time.monotonic() - begun
        if waited > patience_s or (waited > _GLANCE_S and _held_s(lock) > patience_s):
            raise Held(lock.removesuffix(".lock"))
        time.sleep(_LOOK_S)
    return held


def _held_s(lock: str) -> float:
    """For how long whoever holds the lock has had it; somebody else may have it by now."""
    with report_path(lock):
        return abs(time.time() - os.stat(lock).st_mtime)


def _taken(lock: str) -> int | None:
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


class Trailing:
    """For a process that lives long: what is wanted is built a moment later by a thread, and at the end for sure.

    `build` reports its own failures: there is nobody above the thread.
    """

    def __init__(self, build: Callable[[], object], pause_s: float = PAUSE_S, *, at_once: bool = False) -> None:
        """Nothing is started until something is wanted. `at_once`: the pause lies between two, not before the first."""
        import threading

        self._build, self._pause_s, self._at_once = build, pause_s, at_once
        self._rested_at = 0.0
        self._wanted, self._ending = threading.Event(), threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def want(self) -> None:
        """Have it built soon; from any thread, and never waits."""
        import threading

        self._wanted.set()
        with self._starting:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._work, name="jackline-views", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Build what is still wanted, and end the thread."""
        with self._starting:
            self._ending.set()
            thread = self._thread
        if thread is not None:
            self._wanted.set()  # wakes it; it looks once more, which is cheap
            thread.join()

    def _work(self) -> None:
        ending = False
        while not ending:
            self._wanted.wait()
            left = self._rested_at - time.monotonic()
            self._ending.wait(max(0.0, left) if self._at_once else self._pause_s)
            self._wanted.clear()  # before the look: what is wanted during it is built once more
            ending = self._ending.is_set()  # after that: whoever closes later wakes it once more
            self._build()
            self._rested_at = time.monotonic() + self._pause_s


@contextmanager
def trailing(build: Callable[[], object], pause_s: float = PAUSE_S, *, at_once: bool = False) -> Iterator[Trailing]:
    """One that is closed at the end of the block."""
    made = Trailing(build, pause_s, at_once=at_once)
    try:
        yield made
    finally:
        made.close()
