"""What each action of a script does, by its name; calls are in calls.py. A step that returns is finished."""

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

from .calls import Player, play_call, play_commit, play_edit
from .lines import Stop, failed, tell, write

BLOCK_BYTES = 2**20
LINE = b"all work and no play makes a dull line of output\n"
POLL_SECONDS = 0.01
WAIT_SECONDS = 60.0
LEFTOVER = "import sys, time; time.sleep(float(sys.argv[1])); sys.argv[2] and open(sys.argv[2], 'a').close()"


def _hang(_player: Player, _value: object) -> NoReturn:
    while True:
        signal.pause()


def _ignore(_player: Player, names: Sequence[str]) -> None:
    for name in names:
        signal.signal(signal.Signals[name], signal.SIG_IGN)


def _daemon(player: Player, daemon: Mapping[str, Any]) -> None:
    """Leave a process behind, and go on when it has left our session, environment and output."""
    started, starting = os.pipe()
    child = os.fork()
    if child == 0:
        _leave(os.path.join(player.folder, f"daemon-{player.step}.pid"), daemon)
    os.close(starting)
    os.waitpid(child, 0)
    os.read(started, 1)  # end of file: the leftover has become a program of its own, which closed its end
    os.close(started)


def _leave(pid_file: str, daemon: Mapping[str, Any]) -> NoReturn:
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
        os._exit(0)  # whatever went wrong: two processes must not play one script


def _garbage(_player: Player, garbage: Mapping[str, Any]) -> None:
    """Exactly so many bytes, from one block: memory must not depend on how many."""
    descriptor = 2 if garbage.get("stream") == "stderr" else 1
    newline = garbage.get("newline", True)
    block, left = memoryview(_block(garbage["kind"], newline=newline)), int(garbage["bytes"]) - 1
    while left:
        piece = block[:left]
        write(descriptor, piece)
        left -= len(piece)
    write(descriptor, b"\n" if newline else b"x")


def _block(kind: str, *, newline: bool) -> bytes:
    match kind:
        case "lines":
            return LINE * (BLOCK_BYTES // len(LINE))
        case "long_line":
            return b"x" * BLOCK_BYTES
        case _:
            block = bytes(range(256)) * (BLOCK_BYTES // 256)
            return block if newline else block.replace(b"\n", b"\v")


def _usage(_player: Player, usage: Mapping[str, float]) -> None:
    tell("usage", **{"input": 0, "output": 0, "cached": 0, "usd": 0, **usage})


def _limit(_player: Player, limit: Mapping[str, Any]) -> NoReturn:
    resets_at = limit.get("resets_at")
    if "resets_in" in limit:
        resets_at = round(time.time() + limit["resets_in"], 3)
    raise Stop(1, "limit", resets_at=resets_at, text=limit.get("text", "usage limit reached"))


def _error(_player: Player, error: Mapping[str, str]) -> NoReturn:
    raise failed(error["class"], error.get("detail", ""))


def _crash(_player: Player, name: str) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash on purpose leaves no core file
    number = signal.Signals[name]
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)  # an earlier step may have ignored it
    os.kill(os.getpid(), number)


def _touch(_player: Player, path: str) -> None:
    """Make the file; opening a FIFO waits until somebody reads it."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))


def _wait_for(_player: Player, wanted: str | Mapping[str, Any]) -> None:
    asked: Mapping[str, Any] = {"file": wanted} if isinstance(wanted, str) else wanted
    path, seconds = asked["file"], asked.get("seconds", WAIT_SECONDS)
    deadline = time.monotonic() + seconds
    while not _appeared(path, deadline):
        if time.monotonic() >= deadline:
            raise failed("agent_error", f"waited {seconds:g} s for {path}")
        time.sleep(POLL_SECONDS)


def _appeared(path: str, deadline: float) -> bool:
    """True when the file is there; a FIFO counts once somebody wrote to it, or opened and closed it."""
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


PLAYS: Mapping[str, Callable[[Player, Any], None]] = {
    "say": lambda _player, text: tell("message", text=text),
    "think": lambda _player, text: tell("thinking", text=text),
    "call": play_call,
    "edit": play_edit,
    "commit": play_commit,
    "sleep": lambda _player, seconds: time.sleep(seconds),
    "hang": _hang,
    "ignore": _ignore,
    "daemon": _daemon,
    "garbage": _garbage,
    "usage": _usage,
    "limit": _limit,
    "error": _error,
    "exit": lambda _player, code: sys.exit(int(code)),
    "crash": _crash,
    "touch": _touch,
    "wait_for": _wait_for,
}
