"""Ctrl-C, SIGTERM and SIGHUP while a run is worked on: it is asked once to park, however often they come."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While entered, a signal is remembered and handed to what is worked on, even if that starts later."""

    def __init__(self) -> None:
        self.pressed = False
        self._interrupt: Callable[[], None] | None = None
        self._before: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:  # nohup, or a shell that started us in the background, meant it
                signal.signal(number, self._handle)
                self._before.append((number, before))
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before:
            signal.signal(number, before)

    def on_start(self, interrupt: Callable[[], None]) -> None:
        """Remember how to interrupt what begins now; do it at once if a signal came before."""
        self._interrupt = interrupt
        if self.pressed:
            interrupt()

    def _handle(self, _number: int, _frame: object) -> None:
        if self.pressed:
            return  # the agent has a few seconds to end; pressing again does not help and does no harm
        self.pressed = True
        if self._interrupt is not None:
            self._interrupt()


@contextmanager
def interruptible() -> Iterator[None]:
    """Whoever ends a demo or a drill, by whatever means there is to be heard: it cleans up first."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
