"""The process tree below this process, and how to kill it completely."""

from __future__ import annotations

import os
import signal

from . import proc
from .host import LINUX, boot_ms, drain, open_wakeup, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PATIENCE_MS = 30_000  # how long to keep killing; only a process stuck in the kernel, or of another user, survives
FREEZE_ROUNDS = 10
CHASE_ROUNDS = 200


def send_signal(pid: int, number: int, send: Callable[[int, int], None] = os.kill) -> bool:
    try:
        send(pid, number)
    except proc.GONE:  # checked again at the end
        return False
    return True


class Tree:
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

    def living(self, spare: Collection[int] = ()) -> dict[int, proc.Process]:
        table = proc.processes()
        return {pid: table[pid] for pid in proc.descendants(table, [os.getpid()], spare)}

    def terminate(self) -> None:
        pids = self.living() if LINUX else [pid for pid, status in self.statuses.items() if status is None]
        for pid in pids:
            send_signal(pid, signal.SIGTERM)
            send_signal(pid, signal.SIGCONT)  # a stopped process handles SIGTERM only after SIGCONT

    def end(self, spare: Collection[int] = (), patience_ms: int = PATIENCE_MS) -> tuple[set[int], int]:
        """Kill everything except `spare` and its descendants. Return the pids, and the number of survivors."""
        killed: set[int] = set()
        give_up = boot_ms() + patience_ms
        while not self._is_over(spare):
            if boot_ms() >= give_up:  # at least one, even if it forks too fast to be seen
                return killed, max(1, len(self.living(spare)))
            killed |= self._kill_frozen(spare)
            killed |= self._kill_orphans(spare)
            self._wait_for_deaths()
        return killed, 0

    def _is_over(self, spare: Collection[int]) -> bool:
        some = self.reap()
        if not some or not spare:
            return not some
        # With living guards only /proc can tell; the second look sees a fork during the first.
        return not self.living(spare) and not self.living(spare)

    def _kill_frozen(self, spare: Collection[int]) -> set[int]:
        found = self._freeze(spare)
        groups = {process.group for process in found.values()} | self.groups
        for group in groups - {os.getpgrp()}:  # a group is killed at once, so that no fork escapes
            send_signal(group, signal.SIGKILL, os.killpg)
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        return set(found)

    def _freeze(self, spare: Collection[int]) -> dict[int, proc.Process]:
        """Stop all before killing one: a parent that sees its child die may start the next."""
        frozen: set[int] = set()
        found: dict[int, proc.Process] = {}
        for _ in range(FREEZE_ROUNDS):
            found = self.living(spare)
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
            pids = [pid for pid in proc.direct_children() if pid not in spare]
            killed.update(pid for pid in pids if send_signal(pid, signal.SIGKILL))
            if not pids:
                break
        return killed

    def _wait_for_deaths(self) -> None:
        wait_readable([self.wake], 20)
        drain(self.wake)
