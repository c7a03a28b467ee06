"""Run a command to its end, with the last bytes it wrote. It starts nothing itself: process.py and the warden do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jackline.clock import boot_ms
from jackline.engine.child import CHUNK_BYTES, Child
from jackline.engine.process import Warden, WardenLost

_COMMAND_GRACE_MS = 10_000


class CommandResult(NamedTuple):
    """How a command ended, with the last bytes it wrote."""

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout_tail: bytes
    stderr_tail: bytes
    duration_ms: int


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * self._limit + CHUNK_BYTES:  # seldom, so that cutting costs nothing
            del self._kept[: -self._limit or None]

    def value(self) -> bytes:
        return bytes(self._kept[-self._limit :]) if self._limit else b""


def run_command(
    command: str | Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout_s: float,
    output_limit: int = 65536,
    below: Warden | None = None,
) -> CommandResult:
    """Run a command (a string goes to /bin/sh) to its end; at the timeout its whole tree is killed.

    Below the attempt's warden it also dies with the attempt's lease; without one it gets its own warden.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    if below is not None:
        return _run(below, argv, cwd, env, stdin, timeout_s, output_limit)
    deadline_ms = boot_ms() + int(timeout_s * 1000) + _COMMAND_GRACE_MS
    marker = {"JACKLINE_COMMAND": os.urandom(8).hex()}
    with Warden.start(deadline_ms=deadline_ms, marker=marker) as own:
        return _run(own, argv, cwd, env, stdin, timeout_s, output_limit)


def _run(
    owner: Warden,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    output_limit: int,
) -> CommandResult:
    started = boot_ms()
    child = owner.spawn(argv, env, cwd, stdin=stdin)
    try:
        tails = {"stdout": _Tail(output_limit), "stderr": _Tail(output_limit)}
        timed_out = not _follow(child, tails, timeout_s)
        if timed_out:
            child.kill()
            _follow(child, tails, None)
        ending = child.wait()
    except BaseException:
        child.kill()
        raise
    finally:
        child.close()
    if ending is None or ending.lost:
        raise WardenLost(owner.last_words())
    outputs = tails["stdout"].value(), tails["stderr"].value()
    return CommandResult(ending.code, ending.signal, timed_out, *outputs, boot_ms() - started)


def _follow(child: Child, tails: Mapping[str, _Tail], timeout_s: float | None) -> bool:
    """Read until the child has ended. False when time is up."""
    end_ms = None if timeout_s is None else boot_ms() + int(timeout_s * 1000)
    while True:
        left = None if end_ms is None else (end_ms - boot_ms()) / 1000
        if left is not None and left <= 0:
            return False
        if child.drained:
            return child.wait(left) is not None
        for chunk in child.read(left):
            tails[chunk.source].add(chunk.data)
