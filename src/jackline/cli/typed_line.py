"""Reads one line at the terminal; a signal or the end of input means that the person has left."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.cli.output import Output

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def has_terminal(out: Output) -> bool:
    """Whether a person can be asked here."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return not out.json and all(stream is not None and stream.isatty() for stream in streams)


def read_typed_line(prompt: str, out: Output) -> str | None:
    """The line without spaces around it; None if the person has left."""
    with _interruptible():
        try:
            out.stderr.write(prompt)
            line = sys.stdin.buffer.readline()
        except (KeyboardInterrupt, OSError):  # OSError: the terminal is gone
            line = b""
    if not line:
        out.stderr.write("\n")
        return None
    return line.decode("utf-8", "replace").strip()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal end a question at once."""
    handlers = [(number, signal.getsignal(number)) for number in _SIGNALS]
    replaced = [(number, handler) for number, handler in handlers if handler is not signal.SIG_IGN]
    for number, _ in replaced:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in replaced:
            signal.signal(number, handler)
