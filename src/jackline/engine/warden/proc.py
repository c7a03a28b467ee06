"""What /proc says about the processes of this host; it touches none of them. Without /proc there are none."""

from __future__ import annotations

import os

from .host import LINUX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# Dead, or hidden as another user's. No other error may pass for it: a look that fails has not seen a death.
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Process:
    """What /proc says about one process at one moment."""

    __slots__ = ("dead", "group", "parent", "pid", "session", "start_ticks")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The name in brackets may hold blanks and brackets itself, so count from the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.start_ticks = int(fields[19])
        # A main thread that has ended shows as a zombie while other threads of the process still work.
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
    """Give every living process of this host, as far as it may be seen."""
    if not LINUX:
        return {}
    seen = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in seen if process and not process.dead}


def find_ancestors() -> list[int]:
    """List the processes above this one, the parent first, without the first process of the host."""
    found: list[int] = []
    parent = os.getppid()
    while parent > 1 and parent not in found:
        found.append(parent)
        process = read_process(parent)
        parent = process.parent if process else 0
    return found


def read_environment(pid: int) -> bytes:
    """Read the environment a process was started with, each pair between zero bytes; empty if it is hidden or gone."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + file.read() + b"\0"
    except GONE:
        return b""


def descendants(table: dict[int, Process], roots: Iterable[int], spare: Collection[int] = ()) -> set[int]:
    """Follow the parents' chain down from the roots, which are not part of the answer; not below `spare`."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    open_ends = list(roots)
    while open_ends:
        fresh = [pid for pid in children.get(open_ends.pop(), ()) if pid not in found and pid not in spare]
        found.update(fresh)
        open_ends.extend(fresh)
    return found


def direct_children() -> list[int]:
    """One small read instead of a walk through all of /proc; nothing where the kernel does not offer it."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []
