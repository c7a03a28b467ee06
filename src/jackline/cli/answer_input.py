"""Reads an answer at the terminal while it watches for another one: the first answer, from anywhere, counts."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import time
from enum import StrEnum
from typing import TYPE_CHECKING

from jackline.app.run_wait import POLL_SECONDS
from jackline.cli.signals import raise_on_signals
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.cli.output import Output

_ERASE = "\r\x1b[2K"
_CHUNK = 4096


class InputEnd(StrEnum):
    """Why the terminal is no longer read."""

    LINE = "line"
    LEFT = "left"  # the end of input, a signal, or a terminal that is gone
    CHANGED = "changed"  # something happened elsewhere


class TypedAnswer(NamedTuple):
    """What was typed."""

    end: InputEnd
    text: str = ""


def has_terminal(out: Output) -> bool:
    """Whether a person can be asked here: stdin and stderr are terminals, and this process is in the foreground."""
    if out.json or sys.stdin is None or sys.stderr is None:
        return False
    return sys.stdin.isatty() and sys.stderr.isatty() and _is_foreground()


def read_answer(prompt: str, out: Output, has_changed: Callable[[], bool] = lambda: False) -> TypedAnswer:
    """Show the prompt and read one line. What was typed before the prompt was shown is not an answer.

    In the background, only `has_changed` is asked. If it is true, the prompt disappears.
    """
    with raise_on_signals():  # a signal ends a question at once; elsewhere it only asks the run to park
        try:
            return _read_answer(prompt, out, has_changed)
        except (KeyboardInterrupt, OSError, termios.error):  # OSError: the terminal is gone
            with contextlib.suppress(KeyboardInterrupt):
                out.stderr.write("\n")
            return TypedAnswer(InputEnd.LEFT)


def _read_answer(prompt: str, out: Output, has_changed: Callable[[], bool]) -> TypedAnswer:
    descriptor, data, is_shown = sys.stdin.fileno(), b"", False
    while b"\n" not in data:
        if not _is_foreground():
            is_shown = False
            time.sleep(POLL_SECONDS)
        elif not is_shown:
            termios.tcflush(descriptor, termios.TCIFLUSH)
            out.stderr.write(prompt)
            is_shown = True
        elif select.select([descriptor], [], [], POLL_SECONDS)[0]:
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                out.stderr.write("\n")
                return TypedAnswer(InputEnd.LEFT)
            data += chunk
        elif has_changed():
            out.stderr.write("\n" if os.environ.get("TERM") == "dumb" else _ERASE)
            return TypedAnswer(InputEnd.CHANGED)
    return TypedAnswer(InputEnd.LINE, data.decode("utf-8", "replace").partition("\n")[0].strip())


def _is_foreground() -> bool:
    """Whether the terminal's input is for this process: one in the background would be stopped when it reads."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal that does not control this process
        return True
