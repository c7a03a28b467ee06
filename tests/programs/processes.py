"""Hold on to processes by pidfd: tests wait for real deaths, and a reused pid cannot fool them."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable
from typing import Self

PROGRAMS = os.path.dirname(os.path.abspath(__file__))


class Grip:
    """A hold on some living processes."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds = {pid: os.pidfd_open(pid) for pid in pids}

    def deaths(self, timeout_s: float) -> set[int]:
        """Wait until all are dead or time is up; give the dead."""
        return {pid for pid, fd in self._fds.items() if is_readable(fd, timeout_s)}

    def all_die(self, timeout_s: float = 60) -> bool:
        return self.deaths(timeout_s) == self._fds.keys()

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind, also when the test has failed."""
        for fd in self._fds.values():
            if not is_readable(fd, 0):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        self.close()


def is_readable(fd: int, timeout_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
