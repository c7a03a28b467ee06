"""Handles Ctrl-C, SIGTERM and SIGHUP during a run: the run is asked once to park, however often they arrive."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PARKING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Remembers a signal while entered and passes it to the current work, even to work that starts later."""

    def __init__(self) -> None:
        self.pressed = False
        self._interrupt: Callable[[], None] | None = None
        self._previous: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        for number in _PARKING_SIGNALS:
            handler = signal.getsignal(number)
            if handler is not signal.SIG_IGN:  # nohup and background jobs ignore signals on purpose
                signal.signal(number, self._handle_signal)
                self._previous.append((number, handler))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous:
            signal.signal(number, handler)

    def on_start(self, interrupt: Callable[[], None]) -> None:
        """Set how to interrupt the work that starts now, and do it at once if a signal arrived before."""
        self._interrupt = interrupt
        if self.pressed:
            interrupt()

    def _handle_signal(self, _number: int, _frame: object) -> None:
        if self.pressed:
            return  # the agent already has its grace time; a second signal changes nothing
        self.pressed = True
        if self._interrupt is not None:
            self._interrupt()


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that the demo and the drill clean up."""
    previous = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
