"""System calls of the warden: the boot clock, waiting, descriptors."""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as signal  # noqa: PLC0414 - the other modules take both from here
    import socket as socket  # noqa: PLC0414
    from collections.abc import Collection, Iterable
    from types import FrameType
else:  # without their enumerations
    import _signal as signal
    import _socket as socket

LINUX = sys.platform == "linux"
BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_INT_BYTES = 4
TICK_MS = 1_000  # poll(2) does not count suspend, the boot clock does: check it at least this often


def boot_ms() -> int:
    return time.clock_gettime_ns(BOOT_CLOCK) // 1_000_000


def prctl(option: int, value: int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if library.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} is refused")


def become_subreaper() -> None:
    if LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)


def ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal only has to write into the wake-up pipe."""


def open_wakeup() -> int:
    """Return a pipe that becomes readable when a child has died."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, ignore_signal)
    return reader


def drain_pipe(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def wait_readable(fds: Iterable[int], timeout_ms: int) -> set[int]:
    poll = select.poll()  # not select(2), which is limited to low descriptor numbers
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(max(0, timeout_ms))}


def receive_with_fds(control: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Receive bytes and the descriptors that came with them, which no child inherits."""
    space = socket.CMSG_LEN(most * _INT_BYTES)
    data, received, _, _ = control.recvmsg(size, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    fds: list[int] = []
    for level, kind, numbers in received:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            whole = len(numbers) - len(numbers) % _INT_BYTES
            fds.extend(memoryview(numbers)[:whole].cast("i"))
    return data, fds


def close_others(keep: Collection[int]) -> None:
    for name in os.listdir("/proc/self/fd" if LINUX else "/dev/fd"):
        if int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:  # the listing's own descriptor
                continue
