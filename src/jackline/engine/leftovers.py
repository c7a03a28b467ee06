"""Find and end the processes that an earlier attempt left behind; never us, nor those that started us.

A process belongs to an attempt when its environment carries the marker, when its pid and start time were
recorded, when it descends from such a process, or when such a process leads its session. What cleared its
environment *and* lost every one of these ties cannot be found here: only a living warden or guard ends it.
On macOS there is no /proc, and nothing is found.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence

from jackline.clock import boot_ms
from jackline.engine.warden.proc import (
    GONE,
    Process,
    descendants,
    find_ancestors,
    processes,
    read_environment,
    read_process,
)
from jackline.engine.warden.tree import FREEZE_ROUNDS
from jackline.errors import JacklineError
from jackline.named import NamedTuple

PATIENCE_MS = 10_000
_QUIET_LOOKS = 2  # a process in the middle of exec(2) shows no environment for a moment
_COMMAND_LENGTH = 200


class LeftoversRemain(JacklineError):
    """processes of an earlier attempt cannot be ended (pid {detail}): end them by hand, then resume"""  # noqa: D400 - it is the message


class Leftover(NamedTuple):
    """One process that carries the marker."""

    pid: int
    start_ticks: int
    command: str


def start_ticks(pid: int) -> int | None:
    """Give the start time of a living process; with the pid it names the process for the whole boot."""
    process = read_process(pid)
    return None if process is None or process.dead else process.start_ticks


def find(marker: Mapping[str, str]) -> list[Leftover]:
    """List the processes whose environment holds all pairs of the marker."""
    if not marker:
        raise ValueError("an empty marker would fit every process")
    pairs, kin = _encode(marker), _kin()
    table = processes()
    pids = [pid for pid in table if pid not in kin and _carries(pid, pairs)]
    return [Leftover(pid, table[pid].start_ticks, _command(pid)) for pid in pids]


def end(
    marker: Mapping[str, str],
    *,
    recorded: Sequence[tuple[int, int]] = (),
    patience_ms: int = PATIENCE_MS,
) -> int:
    """Kill all that is left of an attempt, and give their number once none is left.

    `recorded` are (pid, start time) pairs of this very boot: after another boot they mean nothing.
    """
    pairs = _encode(marker)
    killed: set[tuple[int, int]] = set()
    give_up = boot_ms() + patience_ms
    quiet = 0
    while quiet < _QUIET_LOOKS:
        found = _freeze(pairs, recorded)
        quiet = 0 if found else quiet + 1
        for process in found:
            _signal(process, signal.SIGKILL)
        if not all(_await_death(process, give_up) for process in found) or boot_ms() > give_up:
            raise LeftoversRemain(", ".join(str(process.pid) for process in found if _is_alive(process)))
        killed.update((process.pid, process.start_ticks) for process in found)
    return len(killed)


def _freeze(pairs: list[bytes], recorded: Sequence[tuple[int, int]]) -> list[Process]:
    """Stop all before one is killed: else a parent that sees its child die may start the next."""
    frozen: set[int] = set()
    found: dict[int, Process] = {}
    for _ in range(FREEZE_ROUNDS):
        found = _gather(pairs, recorded)
        fresh = found.keys() - frozen
        if not fresh:
            break
        for pid in fresh:
            _signal(found[pid], signal.SIGSTOP)
        frozen |= fresh
    return list(found.values())


def _gather(pairs: list[bytes], recorded: Sequence[tuple[int, int]]) -> dict[int, Process]:
    kin = _kin()
    table = processes()
    roots = {pid for pid, ticks in recorded if pid in table and table[pid].start_ticks == ticks}
    if pairs:
        roots |= {pid for pid in table if _carries(pid, pairs)}
    roots -= kin
    # Only descendants of its leader are in a session, also those that descend through the dead.
    roots |= {process.pid for process in table.values() if process.session in roots}
    return {pid: table[pid] for pid in (roots | descendants(table, roots, spare=kin)) - kin}


def _kin() -> set[int]:
    """Ourselves and everybody above us."""
    return {1, os.getpid(), *find_ancestors()}


def _encode(marker: Mapping[str, str]) -> list[bytes]:
    return [b"\0" + os.fsencode(f"{name}={value}") + b"\0" for name, value in marker.items()]


def _carries(pid: int, pairs: list[bytes]) -> bool:
    environment = read_environment(pid)
    return all(pair in environment for pair in pairs)


def _command(pid: int) -> str:
    words = _read(f"/proc/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    return os.fsdecode(b" ".join(words))[:_COMMAND_LENGTH]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except GONE:
        return b""


def _signal(process: Process, number: signal.Signals) -> None:
    fd = _open(process)
    if fd is None:
        return
    try:
        signal.pidfd_send_signal(fd, number)
    except GONE:  # whether it still lives is seen afterwards
        return
    finally:
        os.close(fd)


def _await_death(process: Process, give_up_ms: int) -> bool:
    fd = _open(process)
    if fd is None:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(max(0, give_up_ms - boot_ms())))
    finally:
        os.close(fd)


def _open(process: Process) -> int | None:
    """Take hold of the process itself: its pid may be another's by now."""
    if sys.platform != "linux":
        return None
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if _is_alive(process):
        return fd
    os.close(fd)
    return None


def _is_alive(process: Process) -> bool:
    return start_ticks(process.pid) == process.start_ticks
