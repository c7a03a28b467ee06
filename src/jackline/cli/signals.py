"""Receives Ctrl-C, SIGTERM and SIGHUP in a command. Signals that were ignored when it started stay ignored.

Python runs a signal handler in the main thread only, and a main thread that waits for a lock or a queue notices a
signal only if the system interrupts that very thread. After SIGSTOP and SIGCONT it often interrupts another one: the
handler would then run when the wait ends by itself, which may be never.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_READ_BYTES = 64


class SignalListener:
    """While entered, a thread calls a function with the number of each stop signal, whichever thread it interrupts."""

    def __init__(self, on_signal: Callable[[int], None]) -> None:
        """Listen to nothing yet."""
        self._on_signal = on_signal
        self._previous: list[tuple[signal.Signals, Any]] = []
        self._previous_fd = self._writer = -1
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)  # Python insists; a full pipe holds thousands of signals
        self._thread = threading.Thread(target=self._listen, args=(reader,), name="signals", daemon=True)
        self._thread.start()
        self._previous_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._previous = _replace_handlers(self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._writer)  # ends the thread, after what has arrived
        if self._thread is not None:
            self._thread.join()
        _restore_handlers(self._previous)

    def _handle(self, _number: int, _frame: object) -> None:
        """Nothing: with a handler of Python's, the system's handler writes the number into the pipe."""

    def _listen(self, reader: int) -> None:
        try:
            while numbers := os.read(reader, _READ_BYTES):
                for number in numbers:
                    if number in STOP_SIGNALS:  # not one of a handler that the program has installed
                        self._on_signal(number)
        finally:
            os.close(reader)


@contextlib.contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turn the stop signals into KeyboardInterrupt: for work in the main thread that never waits long.

    An entered listener does not receive them.
    """
    listener_fd = signal.set_wakeup_fd(-1)
    previous = _replace_handlers(signal.default_int_handler)
    try:
        yield
    finally:
        _restore_handlers(previous)
        signal.set_wakeup_fd(listener_fd, warn_on_full_buffer=False)


def _replace_handlers(handler: Callable[[int, Any], object]) -> list[tuple[signal.Signals, Any]]:
    """Set the handler of the stop signals, except ignored ones: nohup and shells ignore some on purpose."""
    previous = [(number, old) for number in STOP_SIGNALS if (old := signal.getsignal(number)) is not signal.SIG_IGN]
    for number, _ in previous:
        signal.signal(number, handler)
    return previous


def _restore_handlers(previous: list[tuple[signal.Signals, Any]]) -> None:
    for number, handler in previous:
        signal.signal(number, handler)
