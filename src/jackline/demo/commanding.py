"""Jackline's own command line, as the demo types it: to its end, or with its agent killed on the way."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.demo.expecting import ended_so, expect
from jackline.demo.seen import agent_pid
from jackline.engine.command import run_command
from jackline.engine.process import Warden
from jackline.named import NamedTuple
from jackline.store.open import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.demo.place import Place
    from jackline.engine.child import Child
    from jackline.store.contract import Store

DATABASE = "state.sqlite"
_SECONDS = 180.0  # the slowest CLI on a slow machine
_TICK_S = 0.02
_TOLD_SECONDS = 3.0  # a CLI that tells a call when it begins has told it by then


class Killed(NamedTuple):
    """How the agent was killed: its process, and whether its call had been written down by then."""

    pid: int
    noted: bool


def open_state(place: Place) -> Store:
    """The demo's own database; the caller closes it."""
    return open_store(os.path.join(place.home, DATABASE), create=False, read_only=True)


def run_to_end(place: Place, *words: str) -> None:
    """`jackline run …`, which must succeed."""
    ended = run_command(
        _argv(words), cwd=place.repository, env=place.environment, timeout_s=_SECONDS, output_limit=1 << 16
    )
    said = ended_so(ended.exit_code, ended.stderr_tail, ended.stdout_tail)
    expect(ended.exit_code == 0, f"the run should have succeeded, but: {said}")


def run_and_kill(place: Place, run_id: str, sign: str, *words: str) -> Killed:
    """The same, but its agent gets SIGKILL as soon as the file `sign` has a word in it; the run must go on alone."""
    deadline = boot_ms() + int(2 * _SECONDS * 1000)
    with Warden.start(deadline_ms=deadline, marker={"JACKLINE_COMMAND": secrets.token_hex(8)}) as warden:
        child = warden.spawn(_argv(words), place.environment, place.repository)
        try:
            heard = bytearray()
            begun = _read_until(child, heard, lambda: bool(place.read(sign)), _SECONDS)
            expect(begun, f"the agent never began its call: {ended_so(None, bytes(heard))}")
            killed = _kill(place, run_id, child, heard)
            ended = _read_until(child, heard, lambda: child.drained, _SECONDS)
            exit_ = child.wait(_SECONDS) if ended else None
        finally:
            child.close()
    code = exit_.code if exit_ else None
    expect(code == 0, f"the run should have gone on and succeeded, but: {ended_so(code, bytes(heard))}")
    return killed


def _kill(place: Place, run_id: str, child: Child, heard: bytearray) -> Killed:
    store = open_state(place)
    try:
        noted = _read_until(child, heard, lambda: bool(store.open_calls(run_id)), _TOLD_SECONDS)
        pid = agent_pid(store, run_id)
    finally:
        store.close()
    os.kill(pid, signal.SIGKILL)
    return Killed(pid, noted)


def _read_until(child: Child, heard: bytearray, holds: Callable[[], bool], seconds: float) -> bool:
    """Take what the command prints until it holds; False if the command ended before, or time is up."""
    end = boot_ms() + int(seconds * 1000)
    while not holds():
        if child.drained or boot_ms() > end:
            return False
        for chunk in child.read(_TICK_S):
            heard += chunk.data
    return True


def _argv(words: tuple[str, ...]) -> tuple[str, ...]:
    return (sys.executable, "-m", "jackline", *words)
