"""The actions of a script, by name; calls are in tool_calls.py. A step that returns is finished."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from .agent_io import Stop, build_failure, emit, write_all
from .tool_calls import ScriptState, play_call, play_commit, play_edit

BLOCK_BYTES = 2**20
LINE = b"all work and no play makes a dull line of output\n"
POLL_SECONDS = 0.01
WAIT_SECONDS = 60.0
LEFTOVER = "import sys, time; time.sleep(float(sys.argv[1])); sys.argv[2] and open(sys.argv[2], 'a').close()"


def _play_hang(_state: ScriptState, _value: object) -> NoReturn:
    while True:
        signal.pause()


def _play_ignore(_state: ScriptState, names: Sequence[str]) -> None:
    for name in names:
        signal.signal(signal.Signals[name], signal.SIG_IGN)


def _play_daemon(state: ScriptState, daemon: Mapping[str, Any]) -> None:
    """Leave a process behind; continue once it has left our session, environment and output."""
    started, starting = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(os.path.join(state.folder, f"daemon-{state.step}.pid"), daemon)
    os.close(starting)
    os.waitpid(child, 0)
    os.read(started, 1)  # end of file: the leftover has executed its own program, which closed the pipe
    os.close(started)


def _become_daemon(pid_file: str, daemon: Mapping[str, Any]) -> NoReturn:
    try:
        os.setsid()
        if os.fork() == 0:
            with open(pid_file, "w", encoding="ascii") as file:
                file.write(f"{os.getpid()}\n")
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(nowhere, descriptor)
            touch = os.path.abspath(daemon["touch"]) if "touch" in daemon else ""
            argv = (sys.executable, "-IS", "-c", LEFTOVER, str(daemon["seconds"]), touch)
            os.execve(sys.executable, argv, {})  # noqa: S606 - no shell is wanted
    finally:
        os._exit(0)  # even after an error: two processes must not play one script


def _play_garbage(_state: ScriptState, garbage: Mapping[str, Any]) -> None:
    """Print exactly this many bytes from one block: memory use must not depend on the number."""
    descriptor = 2 if garbage.get("stream") == "stderr" else 1
    newline = garbage.get("newline", True)
    every_byte = bytes(range(256))
    patterns = {"lines": LINE, "long_line": b"x"}
    pattern = patterns.get(garbage["kind"], every_byte if newline else every_byte.replace(b"\n", b"\v"))
    block, left = memoryview(pattern * (BLOCK_BYTES // len(pattern))), int(garbage["bytes"]) - 1
    while left:
        piece = block[:left]
        write_all(descriptor, piece)
        left -= len(piece)
    write_all(descriptor, b"\n" if newline else b"x")


def _play_limit(_state: ScriptState, limit: Mapping[str, Any]) -> NoReturn:
    resets_at = limit.get("resets_at")
    if "resets_in" in limit:
        resets_at = round(time.time() + limit["resets_in"], 3)
    raise Stop(1, "limit", resets_at=resets_at, text=limit.get("text", "usage limit reached"))


def _play_error(_state: ScriptState, error: Mapping[str, str]) -> NoReturn:
    raise build_failure(error["class"], error.get("detail", ""))


def _play_crash(_state: ScriptState, name: str) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an intended crash leaves no core file
    number = signal.Signals[name]
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)  # an earlier step may have ignored it
    os.kill(os.getpid(), number)


def _play_touch(_state: ScriptState, path: str) -> None:
    """Create the file; opening a FIFO waits for a reader."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))


def _play_wait_for(_state: ScriptState, wanted: str | Mapping[str, Any]) -> None:
    options: Mapping[str, Any] = {"file": wanted} if isinstance(wanted, str) else wanted
    path, seconds = options["file"], options.get("seconds", WAIT_SECONDS)
    deadline = time.monotonic() + seconds
    while not _has_appeared(path, deadline):
        if time.monotonic() >= deadline:
            raise build_failure("agent_error", f"waited {seconds:g} s for {path}")
        time.sleep(POLL_SECONDS)


def _has_appeared(path: str, deadline: float) -> bool:
    """Whether the file exists; a FIFO counts once a writer wrote to it, or opened and closed it."""
    with suppress(FileNotFoundError):
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return True
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        events = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(descriptor)
        return bool(events)
    return False


ACTIONS: Mapping[str, Callable[[ScriptState, Any], None]] = {
    "say": lambda _state, text: emit("message", text=text),
    "think": lambda _state, text: emit("thinking", text=text),
    "call": play_call,
    "edit": play_edit,
    "commit": play_commit,
    "sleep": lambda _state, seconds: time.sleep(seconds),
    "hang": _play_hang,
    "ignore": _play_ignore,
    "daemon": _play_daemon,
    "garbage": _play_garbage,
    "usage": lambda _state, usage: emit("usage", **{"input": 0, "output": 0, "cached": 0, "usd": 0, **usage}),
    "limit": _play_limit,
    "error": _play_error,
    "exit": lambda _state, code: sys.exit(int(code)),
    "crash": _play_crash,
    "touch": _play_touch,
    "wait_for": _play_wait_for,
}
