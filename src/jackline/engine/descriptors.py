"""Anonymous files, pipes, and waiting for descriptors."""

from __future__ import annotations

import fcntl
import os
import select
import sys
from collections.abc import Sequence
from contextlib import suppress

_ROOM = 1024 * 1024  # the Linux default maximum for users


def memory_file(data: bytes) -> int:
    """Return an anonymous file with the data, which a program can read at any time."""
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
    """Return a large pipe: some CLIs exit before all of their output is read."""
    ends = os.pipe()
    opened.extend(ends)
    if sys.platform == "linux":
        with suppress(OSError):  # the user's limit for large pipes is reached
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
