"""Who of a case runs on this host, and what each is: supervisor, warden, guards, agent, tools. Linux, by /proc."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from jackline.app.drill.failing import DrillFailed
from jackline.engine import leftovers
from jackline.engine.warden.proc import processes, read_process
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.app.drill.place import Place


class Crew(NamedTuple):
    """The processes of one attempt; the tools are all that the agent has started."""

    supervisor: int
    warden: int
    guards: tuple[int, ...]
    agent: int
    tools: tuple[int, ...]


def crew(place: Place, supervisor: int, warden: int) -> Crew:
    """Everybody of the attempt, now."""
    table = processes()
    guards = tuple(pid for pid, one in table.items() if one.parent == warden)
    below = [one for one in table.values() if one.parent in guards]
    if not below:
        raise DrillFailed("the agent's process was not found")
    # The agent is the first that its guard has started; later come only orphans, which the guard adopts.
    agent = min(below, key=lambda one: (one.start_ticks, one.pid)).pid
    known = {supervisor, warden, *guards, agent}
    tools = tuple(pid for pid in running(place) if pid not in known)
    return Crew(supervisor, warden, guards, agent, tools)


def running(place: Place) -> dict[int, str]:
    """Every living process of the case with its command: they all have its HOME."""
    return {one.pid: one.command for one in leftovers.find({"HOME": place.user})}


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    process = read_process(pid)
    return process is not None and not process.dead


def is_stopped(pid: int) -> bool:
    """Whether a SIGSTOP has reached every thread."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            stat = file.read()
        if stat[stat.rindex(b")") + 2 :][:1] not in {b"T", b"t"}:
            return False
    return True


def stop(pids: Iterable[int]) -> None:
    """SIGSTOP: nobody may see another one die before everybody is dead."""
    _send(pids, signal.SIGSTOP)


def wake(pids: Iterable[int]) -> None:
    """SIGCONT."""
    _send(pids, signal.SIGCONT)


def kill(pids: Iterable[int]) -> None:
    """SIGKILL, which nobody can answer."""
    _send(pids, signal.SIGKILL)


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)
