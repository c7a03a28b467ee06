"""Reads the processes of this host from /proc, and kills the tree below this process completely.

Without /proc there are no processes to see.
"""

from __future__ import annotations

import os

from .host import LINUX, boot_ms, drain_pipe, open_wakeup, signal, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

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


def read_process(pid: int, name: str = "") -> Process | None:
    try:
        fd = os.open(f"/proc/{name or pid}/stat", os.O_RDONLY)
    except GONE:
        return None
    try:
        return Process(pid, os.read(fd, 4096))
    except GONE:  # it was reaped between open and read
        return None
    finally:
        os.close(fd)


def list_processes() -> dict[int, Process]:
    """Every living process of this host that is visible."""
    if not LINUX:
        return {}
    seen = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in seen if process and not process.dead}


def find_ancestors() -> list[int]:
    """The ancestors of this process, the parent first, without pid 1."""
    found: list[int] = []
    # In a new process namespace getppid() is 0, and an old /proc still has the numbers outside.
    own = read_process(os.getpid(), "self")
    parent = own.parent if own else os.getppid()
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


def find_descendants(table: dict[int, Process], roots: Iterable[int], spare: Collection[int] = ()) -> set[int]:
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


def read_children() -> list[int]:
    """The children of this process, by one small read instead of all of /proc; empty if the kernel lacks it."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []


PATIENCE_MS = 30_000  # how long to keep killing; only a process stuck in the kernel, or of another user, survives
FREEZE_ROUNDS = 10
CHASE_ROUNDS = 200


def send_signal(pid: int, number: int, send: Callable[[int, int], None] = os.kill) -> bool:
    try:
        send(pid, number)
    except GONE:  # checked again at the end
        return False
    return True


class ProcessTree:
    """All descendants of this process, which is a subreaper: they leave the tree only by dying."""

    def __init__(self) -> None:
        self.statuses: dict[int, int | None] = {}  # exit statuses of the watched pids, None while alive
        self.groups: set[int] = set()  # killed too, for hosts without /proc
        self.wake = open_wakeup()

    def reap(self) -> bool:
        """Reap dead children. False if there is no child at all, and so no descendant: this cannot race."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self.statuses:
                self.statuses[pid] = status

    def find_living(self, spare: Collection[int] = ()) -> dict[int, Process]:
        table = list_processes()
        return {pid: table[pid] for pid in find_descendants(table, [os.getpid()], spare)}

    def terminate(self) -> None:
        """Send SIGTERM to all while they are stopped: an agent would report a killed tool as one that failed."""
        watched = [pid for pid, status in self.statuses.items() if status is None]
        pids = list(self._freeze(())) if LINUX else watched
        for number in (signal.SIGTERM, signal.SIGCONT):  # a stopped process handles SIGTERM only after SIGCONT
            for pid in pids:
                send_signal(pid, number)

    def kill_all(self, spare: Collection[int] = (), patience_ms: int = PATIENCE_MS) -> tuple[set[int], int]:
        """Kill everything except `spare` and its descendants. Return the pids, and the number of survivors."""
        killed: set[int] = set()
        give_up = boot_ms() + patience_ms
        while not self._is_over(spare):
            if boot_ms() >= give_up:  # at least one, even if it forks too fast to be seen
                return killed, max(1, len(self.find_living(spare)))
            killed |= self._kill_frozen(spare)
            killed |= self._kill_orphans(spare)
            wait_readable([self.wake], 20)
            drain_pipe(self.wake)
        return killed, 0

    def _is_over(self, spare: Collection[int]) -> bool:
        some = self.reap()
        if not some or not spare:
            return not some
        # With living guards only /proc can tell; the second look sees a fork during the first.
        return not self.find_living(spare) and not self.find_living(spare)

    def _kill_frozen(self, spare: Collection[int]) -> set[int]:
        found = self._freeze(spare)
        groups = {process.group for process in found.values()} | self.groups
        for group in groups - {os.getpgrp()}:  # a group is killed at once, so that no fork escapes
            send_signal(group, signal.SIGKILL, os.killpg)
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        return set(found)

    def _freeze(self, spare: Collection[int]) -> dict[int, Process]:
        """Stop all before killing one: a parent that sees its child die may start the next."""
        frozen: set[int] = set()
        found: dict[int, Process] = {}
        for _ in range(FREEZE_ROUNDS):
            found = self.find_living(spare)
            fresh = found.keys() - frozen
            if not fresh:
                break
            for pid in fresh:
                send_signal(pid, signal.SIGSTOP)
            frozen |= fresh
        return found

    def _kill_orphans(self, spare: Collection[int]) -> set[int]:
        """Kill processes that fork and exit faster than /proc can be read: as orphans they are our children."""
        killed: set[int] = set()
        for _ in range(CHASE_ROUNDS):
            if not self.reap():
                break
            pids = [pid for pid in read_children() if pid not in spare]
            killed.update(pid for pid in pids if send_signal(pid, signal.SIGKILL))
            if not pids:
                break
        return killed
