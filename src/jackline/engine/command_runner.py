"""Runs a command to its end and keeps the tail of its output. The warden starts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from jackline.clock import boot_ms
from jackline.engine import run_env
from jackline.engine.process import CHUNK_BYTES, Child, Warden, WardenLost
from jackline.named import NamedTuple

_COMMAND_GRACE_MS = 10_000

_LOOK_S = 0.25  # how often `wanted` is checked

OutputListener = Callable[[str, bytes], None]  # called with "stdout" or "stderr", and the new output
StillWanted = Callable[[], bool]  # whether the result is still needed


def always_wanted() -> bool:
    """The default for `wanted`."""
    return True


class CommandResult(NamedTuple):
    """How a command ended, with the tail of its output."""

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
        if len(self._kept) > 2 * self._limit + CHUNK_BYTES:  # rarely, so that cutting is cheap
            del self._kept[: -self._limit or None]

    def value(self) -> bytes:
        return bytes(self._kept[-self._limit :]) if self._limit else b""


class _Tails:
    """The tails of both streams, and the listener."""

    def __init__(self, limit: int, hear: OutputListener) -> None:
        self._streams = {"stdout": _Tail(limit), "stderr": _Tail(limit)}
        self._hear = hear

    def add(self, source: str, data: bytes) -> None:
        self._streams[source].add(data)
        self._hear(source, data)

    def values(self) -> tuple[bytes, bytes]:
        return self._streams["stdout"].value(), self._streams["stderr"].value()


def run_command(  # noqa: PLR0913 - keyword-only options
    command: str | Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout_s: float,
    output_limit: int = 65536,
    below: Warden | None = None,
    hear: OutputListener = lambda _source, _data: None,
    wanted: StillWanted = always_wanted,
) -> CommandResult:
    """Run a command (a string by /bin/sh) to its end; at the timeout its whole process tree is killed.

    Below the attempt's warden it also dies with the attempt's lease; without one it gets its own warden. `hear`
    receives all output as it is written. Once the result is not `wanted` any more, the command is killed.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    tails = _Tails(output_limit, hear)
    if below is not None:
        return _run_below(below, argv, cwd, env, stdin, timeout_s, tails, wanted)
    tags = {name: env[name] for name in (run_env.TAG_VARIABLE, *run_env.NAMES) if name in env}  # see `app.identity`
    with start_command_warden(int(timeout_s * 1000) + _COMMAND_GRACE_MS, tags) as own:
        return _run_below(own, argv, cwd, env, stdin, timeout_s, tails, wanted)


def start_command_warden(most_ms: int, environ: Mapping[str, str] = MappingProxyType({})) -> Warden:
    """A warden for commands that belong to no attempt; it kills them after this time.

    For several commands start one: that takes longer than git. SpawnFailed if it cannot be started.
    """
    marker = {"JACKLINE_COMMAND": os.urandom(8).hex()}
    return Warden.start(deadline_ms=boot_ms() + most_ms, marker=marker, environ=environ)


def _run_below(
    owner: Warden,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    tails: _Tails,
    wanted: StillWanted,
) -> CommandResult:
    started = boot_ms()
    child = owner.spawn(argv, env, cwd, stdin=stdin)
    try:
        timed_out = not _follow(child, tails, timeout_s, wanted)
        if timed_out:
            child.kill()
            _follow(child, tails, None, always_wanted)
        ending = child.wait()
    except BaseException:
        child.kill()
        raise
    finally:
        child.close()
    if ending is None or ending.lost:
        raise WardenLost(owner.read_last_words())
    return CommandResult(ending.code, ending.signal, timed_out, *tails.values(), boot_ms() - started)


def _follow(child: Child, tails: _Tails, timeout_s: float | None, wanted: StillWanted) -> bool:
    """Read until the child has ended. False at the timeout."""
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
