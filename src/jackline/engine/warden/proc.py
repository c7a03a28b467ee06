"""Reads the processes of this host from /proc. Without /proc there are none."""

from __future__ import annotations

import os

from .host import LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# Dead, or hidden because it belongs to another user. No other error means that a process is dead.
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Process:
    """The state of one process at one moment."""

    __slots__ = ("dead", "group", "parent", "pid", "session", "start_ticks")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The name in brackets may contain blanks and brackets, so count from the last bracket.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.start_ticks = int(fields[19])
        # A main thread that has ended is a zombie while other threads of the process still run.
        self.dead = fields[0] in b"ZX" and int(fields[17]) <= 1


def read_process(pid: int) -> Process | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except GONE:
        return None
    try:
        return Process(pid, os.read(fd, 4096))
    except GONE:  # it was reaped between open and read
        return None
    finally:
        os.close(fd)


def processes() -> dict[int, Process]:
    """Every living process of this host that is visible."""
    if not LINUX:
        return {}
    seen = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in seen if process and not process.dead}


def find_ancestors() -> list[int]:
    """The ancestors of this process, the parent first, without pid 1."""
    found: list[int] = []
    parent = os.getppid()
    while parent > 1 and parent not in found:
        found.append(parent)
        process = read_process(parent)
        parent = process.parent if process else 0
    return found


def read_environment(pid: int) -> bytes:
    """The initial environment of a process, each pair between zero bytes; empty if it is hidden or dead."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except GONE:
        return b""


def descendants(table: dict[int, Process], roots: Iterable[int], spare: Collection[int] = ()) -> set[int]:
    """The descendants of the roots, without the roots and without what is below `spare`."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    pending = list(roots)
    while pending:
        fresh = [pid for pid in children.get(pending.pop(), ()) if pid not in found and pid not in spare]
        found.update(fresh)
        pending.extend(fresh)
    return found


def direct_children() -> list[int]:
    """The children of this process, by one small read instead of all of /proc; empty if the kernel lacks it."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []
