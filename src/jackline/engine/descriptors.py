"""Nameless files, pipes and waiting on descriptors; it does not know what flows through them."""

from __future__ import annotations

import fcntl
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress

_ROOM = 1024 * 1024  # the most that Linux gives to anybody


def memory_file(data: bytes) -> int:
    """Give a nameless file: a program may read its input when it likes, and nobody has to feed it."""
    if sys.platform == "linux":
        fd = os.memfd_create("jackline")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def pipe(opened: list[int]) -> tuple[int, int]:
    """A pipe with room: some CLIs exit without waiting until all they wrote has been taken."""
    ends = os.pipe()
    opened.extend(ends)
    if sys.platform == "linux":
        with suppress(OSError):  # this user has too many large ones already
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _ROOM)
    return ends


def close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def readable(fds: Sequence[int], timeout_s: float | None) -> list[int]:
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)]
