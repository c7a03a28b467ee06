"""Finds and kills the processes that an earlier attempt left behind; never this process or its ancestors.

A process belongs to an attempt if its environment has the marker, if its pid and start time were recorded, if it
descends from such a process, or if such a process leads its session. A process without any of these ties cannot be
found here: only a living warden or guard kills it. On macOS there is no /proc, and nothing is found.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Mapping, Sequence

from jackline.clock import boot_ms
from jackline.engine.warden.process_tree import (
    FREEZE_ROUNDS,
    GONE,
    Process,
    find_ancestors,
    find_descendants,
    list_processes,
    read_environment,
    read_process,
)
from jackline.errors import JacklineError
from jackline.named import NamedTuple

PATIENCE_MS = 10_000
_QUIET_LOOKS = 2  # a process during exec(2) briefly has no environment
_COMMAND_LENGTH = 200


class OrphansRemain(JacklineError):
    """processes of an earlier attempt cannot be killed (pid {detail}): kill them by hand, then resume"""  # noqa: D400 - it is the message


class OrphanProcess(NamedTuple):
    """A process with the marker."""

    pid: int
    start_ticks: int
    command: str


def read_start_ticks(pid: int) -> int | None:
    """The start time of a living process; with the pid it identifies the process until the next boot."""
    process = read_process(pid)
    return None if process is None or process.dead else process.start_ticks


def find_orphans(marker: Mapping[str, str]) -> list[OrphanProcess]:
    """List the processes whose environment has all pairs of the marker."""
    if not marker:
        raise ValueError("an empty marker would match every process")
    pairs, kin = _encode_marker(marker), _find_kin()
    table = list_processes()
    pids = [pid for pid in table if pid not in kin and _has_marker(pid, pairs)]
    return [OrphanProcess(pid=pid, start_ticks=table[pid].start_ticks, command=_read_command(pid)) for pid in pids]


def kill_orphans(
    marker: Mapping[str, str],
    *,
    recorded: Sequence[tuple[int, int]] = (),
    patience_ms: int = PATIENCE_MS,
) -> int:
    """Kill all processes of an attempt; return their number once all are dead.

    `recorded` are (pid, start time) pairs of the current boot.
    """
    pairs = _encode_marker(marker)
    killed: set[tuple[int, int]] = set()
    give_up = boot_ms() + patience_ms
    quiet = 0
    while quiet < _QUIET_LOOKS:
        found = _freeze_all(pairs, recorded)
        quiet = 0 if found else quiet + 1
        for process in found:
            _send_signal(process, signal.SIGKILL)
        if not all(_await_death(process, give_up) for process in found) or boot_ms() > give_up:
            raise OrphansRemain(", ".join(str(process.pid) for process in found if _is_alive(process)))
        killed.update((process.pid, process.start_ticks) for process in found)
    return len(killed)


def _freeze_all(pairs: list[bytes], recorded: Sequence[tuple[int, int]]) -> list[Process]:
    """Stop all before killing one: a parent that sees its child die may start the next."""
    frozen: set[int] = set()
    found: dict[int, Process] = {}
    for _ in range(FREEZE_ROUNDS):
        found = _find_processes(pairs, recorded)
        fresh = found.keys() - frozen
        if not fresh:
            break
        for pid in fresh:
            _send_signal(found[pid], signal.SIGSTOP)
        frozen |= fresh
    return list(found.values())


def _find_processes(pairs: list[bytes], recorded: Sequence[tuple[int, int]]) -> dict[int, Process]:
    kin = _find_kin()
    table = list_processes()
    roots = {pid for pid, ticks in recorded if pid in table and table[pid].start_ticks == ticks}
    if pairs:
        roots |= {pid for pid in table if _has_marker(pid, pairs)}
    roots -= kin
    # All members of a session descend from its leader, even if a process in between is dead.
    roots |= {process.pid for process in table.values() if process.session in roots}
    return {pid: table[pid] for pid in (roots | find_descendants(table, roots, spare=kin)) - kin}


def _find_kin() -> set[int]:
    """This process and its ancestors."""
    return {1, os.getpid(), *find_ancestors()}


def _encode_marker(marker: Mapping[str, str]) -> list[bytes]:
    return [b"\0" + os.fsencode(f"{name}={value}") + b"\0" for name, value in marker.items()]


def _has_marker(pid: int, pairs: list[bytes]) -> bool:
    environment = read_environment(pid)
    return all(pair in environment for pair in pairs)


def _read_command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except GONE:
        return ""
    return os.fsdecode(b" ".join(words))[:_COMMAND_LENGTH]


def _send_signal(process: Process, number: signal.Signals) -> None:
    fd = _open_pidfd(process)
    if fd is None:
        return
    try:
        signal.pidfd_send_signal(fd, number)
    except GONE:  # checked afterwards
        return
    finally:
        os.close(fd)


def _await_death(process: Process, give_up_ms: int) -> bool:
    fd = _open_pidfd(process)
    if fd is None:
        return True
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(max(0, give_up_ms - boot_ms())))
    finally:
        os.close(fd)


def _open_pidfd(process: Process) -> int | None:
    """Open the process itself: its pid may have been reused."""
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
    return read_start_ticks(process.pid) == process.start_ticks
