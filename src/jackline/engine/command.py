"""Run a command to its end, with the last bytes it wrote. It starts nothing itself: process.py and the warden do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from jackline.clock import boot_ms
from jackline.engine.child import CHUNK_BYTES, Child
from jackline.engine.process import Warden, WardenLost
from jackline.named import NamedTuple

_COMMAND_GRACE_MS = 10_000
_LOOK_S = 0.25  # how soon it is noticed that nobody waits for the end any more

Hear = Callable[[str, bytes], None]  # stdout or stderr, and what was just written there
Wanted = Callable[[], bool]  # whether somebody still waits for the end of a command


def always() -> bool:
    """Somebody does."""
    return True


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


class _Tails:
    """Both streams of a command, and who listens to them."""

    def __init__(self, limit: int, hear: Hear) -> None:
        self._of = {"stdout": _Tail(limit), "stderr": _Tail(limit)}
        self._hear = hear

    def add(self, source: str, data: bytes) -> None:
        self._of[source].add(data)
        self._hear(source, data)

    def values(self) -> tuple[bytes, bytes]:
        return self._of["stdout"].value(), self._of["stderr"].value()


def run_command(  # noqa: PLR0913 - what can be said of a command, each by its name
    command: str | Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout_s: float,
    output_limit: int = 65536,
    below: Warden | None = None,
    hear: Hear = lambda _source, _data: None,
    wanted: Wanted = always,
) -> CommandResult:
    """Run a command (a string goes to /bin/sh) to its end; at the timeout its whole tree is killed.

    Below the attempt's warden it also dies with the attempt's lease; without one it gets its own warden. `hear` gets
    everything that it writes, at once. When it is not `wanted` any more, its time is up.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    tails = _Tails(output_limit, hear)
    if below is not None:
        return _run(below, argv, cwd, env, stdin, timeout_s, tails, wanted)
    deadline_ms = boot_ms() + int(timeout_s * 1000) + _COMMAND_GRACE_MS
    marker = {"JACKLINE_COMMAND": os.urandom(8).hex()}
    with Warden.start(deadline_ms=deadline_ms, marker=marker) as own:
        return _run(own, argv, cwd, env, stdin, timeout_s, tails, wanted)


def _run(
    owner: Warden,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    tails: _Tails,
    wanted: Wanted,
) -> CommandResult:
    started = boot_ms()
    child = owner.spawn(argv, env, cwd, stdin=stdin)
    try:
        timed_out = not _follow(child, tails, timeout_s, wanted)
        if timed_out:
            child.kill()
            _follow(child, tails, None, always)
        ending = child.wait()
    except BaseException:
        child.kill()
        raise
    finally:
        child.close()
    if ending is None or ending.lost:
        raise WardenLost(owner.last_words())
    return CommandResult(ending.code, ending.signal, timed_out, *tails.values(), boot_ms() - started)


def _follow(child: Child, tails: _Tails, timeout_s: float | None, wanted: Wanted) -> bool:
    """Read until the child has ended. False when time is up."""
    end_ms = None if timeout_s is None else boot_ms() + int(timeout_s * 1000)
    while wanted():
        left = _LOOK_S if end_ms is None else min(_LOOK_S, (end_ms - boot_ms()) / 1000)
        if left <= 0:
            return False
        if child.drained and child.wait(left) is not None:
            return True
        for chunk in child.read(left):
            tails.add(chunk.source, chunk.data)
    return False
