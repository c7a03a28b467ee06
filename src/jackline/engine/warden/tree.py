"""A whole tree of processes below this one, and its end. Whose tree it is, and when it must die, others know."""

from __future__ import annotations

import os
import signal

from . import proc
from .host import LINUX, boot_ms, drain, open_wakeup, wait_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PATIENCE_MS = 30_000  # how long to go on killing; only a process stuck in the kernel or another user's outlives it
FREEZE_ROUNDS = 10
CHASE_ROUNDS = 200


def send_signal(pid: int, number: int, send: Callable[[int, int], None] = os.kill) -> bool:
    try:
        send(pid, number)
    except proc.GONE:  # the last look decides
        return False
    return True


class Tree:
    """All descendants of this very process, which is a subreaper: they leave the tree only by dying."""

    def __init__(self) -> None:
        self.statuses: dict[int, int | None] = {}  # of the pids somebody asked for, None while alive
        self.groups: set[int] = set()  # ended too where there is no /proc
        self.wake = open_wakeup()

    def reap(self) -> bool:
        """Collect the dead. False when there is no child at all, and so no descendant: this cannot race."""
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
            send_signal(pid, signal.SIGCONT)  # a stopped process would take the first one only later

    def end(self, spare: Collection[int] = (), patience_ms: int = PATIENCE_MS) -> tuple[set[int], int]:
        """Kill everything but `spare` and what is below it. Gives the pids, and how many would not die."""
        killed: set[int] = set()
        give_up = boot_ms() + patience_ms
        while not self._is_over(spare):
            if boot_ms() >= give_up:  # at least one, also if it is too quick to be seen
                return killed, max(1, len(self.living(spare)))
            killed |= self._strike(spare)
            killed |= self._chase(spare)
            self._wait_for_deaths()
        return killed, 0

    def _is_over(self, spare: Collection[int]) -> bool:
        some = self.reap()
        if not some or not spare:
            return not some
        # Beside living guards only looking helps; a fork during the first look is there at the second.
        return not self.living(spare) and not self.living(spare)

    def _strike(self, spare: Collection[int]) -> set[int]:
        found = self._freeze(spare)
        groups = {process.group for process in found.values()} | self.groups
        for group in groups - {os.getpgrp()}:  # a group is killed in one stroke, no fork slips through
            send_signal(group, signal.SIGKILL, os.killpg)
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        return set(found)

    def _freeze(self, spare: Collection[int]) -> dict[int, proc.Process]:
        """Stop all before killing one: else a parent that sees its child die may start the next."""
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

    def _chase(self, spare: Collection[int]) -> set[int]:
        """Catch what forks and exits faster than /proc can be read: orphaned, it is our own child."""
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
