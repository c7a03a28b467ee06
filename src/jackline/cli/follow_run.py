"""Works on a run in the foreground until it ends or waits; asks open questions at the terminal.

On Ctrl-C, SIGTERM or SIGHUP the run is asked once to park, however often they arrive.
"""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from jackline.cli import prompts, status_text
from jackline.cli.progress import Progress
from jackline.domain.states import EXIT_INTERRUPTED, RunState, WaitReason, exit_code
from jackline.errors import Busy, Overtaken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Run

_POLL_SECONDS = 0.1
_PARKING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def follow_run(home: Home, run: Run, out: Output, interrupts: Interrupts) -> int:
    """Work on the run and return the exit code for the state it is left in."""
    shown = ""
    while not interrupts.is_interrupted:  # a signal that came before the claim: leave the run to others
        try:
            with Progress(home, run, out) as progress:
                run = home.work(run, interrupts.set_interrupt)
        except (Busy, Overtaken) as error:
            run = _await_other(home, run, out, interrupts, error)
            break
        shown = progress.last_words
        while home.warnings:
            out.print_note(home.warnings.pop(0))
        can_ask = prompts.can_ask(run, out) and not interrupts.is_interrupted
        answered = prompts.ask_open_questions(home, run, out) if can_ask else None
        if answered is None:
            break
        run = answered
    # Interrupted between two attempts, a run is queued or waits for its retry; it was stopped all the same.
    between_attempts = run.status.state is RunState.QUEUED or run.status.reason is WaitReason.RETRY
    code = EXIT_INTERRUPTED if interrupts.is_interrupted and between_attempts else run_exit_code(run)
    return status_text.print_outcome(home, run, out, code, shown=shown)


def _await_other(home: Home, run: Run, out: Output, interrupts: Interrupts, error: Busy | Overtaken) -> Run:
    """Return the run as the faster process leaves it; raise the error if no other process took the run up since."""
    now = home.store().runs.get(run.id) or run
    if isinstance(error, Busy):
        if now.status.attempt == run.status.attempt:
            raise error
        out.print_note(f"another process has taken up run {run.id}: waiting until it stops")
    while now.status.state is RunState.RUNNING and not home.explain_loss(now):
        if interrupts.is_interrupted:
            raise error
        time.sleep(_POLL_SECONDS)
        now = home.store().runs.get(run.id) or run
    return now


def run_exit_code(run: Run) -> int:
    """Return the exit code of a command that leaves the run in its current state."""
    return exit_code(run.status.state, run.status.reason, run.status.failure)


class Interrupts:
    """Remembers a signal while entered and passes it to the current work, even to work that starts later."""

    def __init__(self) -> None:
        self.is_interrupted = False
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

    def set_interrupt(self, interrupt: Callable[[], None]) -> None:
        """Set how to interrupt the work that starts now, and do it at once if a signal arrived before."""
        self._interrupt = interrupt
        if self.is_interrupted:
            interrupt()

    def _handle_signal(self, _number: int, _frame: object) -> None:
        if self.is_interrupted:
            return  # the agent already has its grace time; a second signal changes nothing
        self.is_interrupted = True
        if self._interrupt is not None:
            self._interrupt()


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that the demo and the drill clean up."""
    previous = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
