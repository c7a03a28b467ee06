"""Works on a run in the foreground until it ends or waits; asks open questions at the terminal.

On Ctrl-C, SIGTERM or SIGHUP the run is asked once to park, however often they arrive. A process that jackline started
in the background gets SIGTERM when the machine shuts down: its run is due again at once.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from jackline.app.run_wait import (
    DENY,
    STOP,
    WAIT,
    WaitSteps,
    build_pause,
    wait_for_person,
    wait_while_busy,
    work_and_wait,
)
from jackline.cli import status_text
from jackline.cli.answer_input import has_terminal
from jackline.cli.progress import Progress
from jackline.cli.signals import SignalListener
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import EXIT_INTERRUPTED, RunState, WaitReason, exit_code
from jackline.engine.run_env import DETACHED
from jackline.errors import Busy, Overtaken
from jackline.policy.profiles import CI

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Run
    from jackline.engine.supervise import Interrupt


def follow_run(home: Home, run: Run, out: Output, interrupts: Interrupts, on_ask: str | None = None) -> int:
    """Work on the run and return the exit code for the state it is left in.

    When a person is needed, this process asks at its own terminal. `on_ask` is the flag, which overrides that; without
    a terminal the setting of this name applies.
    """
    asks_here = on_ask is None and has_terminal(out) and run.spec.profile != CI
    on_ask = STOP if asks_here else on_ask or home.config.get_text("on_ask")
    follower = RunFollower(home, out, interrupts, asks_here=asks_here, denies=on_ask == DENY)
    if asks_here or on_ask == WAIT:
        run = work_and_wait(home, run, WaitSteps(work=follower.work, ask=follower.ask, follow=follower.follow))
    else:
        run = follower.work(run)
    # Interrupted between two attempts, a run is queued or waits for its retry; it was stopped anyway.
    between_attempts = run.status.state is RunState.QUEUED or run.status.reason is WaitReason.RETRY
    code = EXIT_INTERRUPTED if interrupts.is_interrupted and between_attempts else run_exit_code(run)
    return status_text.print_outcome(home, run, out, code, shown=follower.last_words)


class RunFollower:
    """Works on a run, asks for what it needs, and watches others who work on it."""

    def __init__(self, home: Home, out: Output, interrupts: Interrupts, *, asks_here: bool, denies: bool) -> None:
        self._home, self._out, self._interrupts = home, out, interrupts
        self._asks_here, self._denies = asks_here, denies
        self.last_words = ""  # of the agent, as they were shown

    def work(self, run: Run) -> Run:
        """Work on the run, or wait until the process stops that was faster."""
        home, interrupts = self._home, self._interrupts
        if interrupts.is_interrupted:  # a signal that came before the claim: leave the run to others
            return run
        try:
            with Progress(home, run, self._out, is_asked_here=self._asks_here) as progress:
                run = home.work(run, interrupts.set_interrupt, DENY if self._denies else STOP)
        except (Busy, Overtaken) as error:
            return self._await_other(run, error)
        self.last_words = progress.last_words
        while home.warnings:
            self._out.print_note(home.warnings.pop(0))
        return run

    def ask(self, run: Run) -> bool:
        """Ask at this terminal, or wait for an answer from anywhere; True if the run is left open."""
        out = self._out
        if self._interrupts.is_interrupted:
            return True
        if self._asks_here:
            from jackline.cli.prompts import ask_person  # most runs ask nothing

            _deliver_beside(self._home)
            return ask_person(self._home, run, out)
        reason = run.status.reason
        out.print_note(f"run {run.id} waits for a person ({reason}); this command continues it after the answer")
        for line in status_text.list_answers(self._home, run, out):
            out.print_note(f"  {line}")
        return wait_for_person(self._home, run, build_pause(self._interrupts.set_interrupt))

    def follow(self, run: Run) -> bool:
        """Show what another process does with the run until it stops; True if interrupted."""
        self._out.print_note(f"another process has taken up run {run.id}: waiting until it stops")
        with Progress(self._home, run, self._out, is_asked_here=self._asks_here) as progress:
            is_left = wait_while_busy(self._home, run, build_pause(self._interrupts.set_interrupt))
        self.last_words = progress.last_words
        return is_left

    def _await_other(self, run: Run, error: Busy | Overtaken) -> Run:
        """Return the run as the faster process leaves it; raise the error if no other process took the run up since."""
        now = self._home.store().runs.get(run.id) or run
        if isinstance(error, Overtaken):
            return now
        if now.status.attempt == run.status.attempt or self.follow(now):
            raise error
        return self._home.store().runs.get(run.id) or now


def _deliver_beside(home: Home) -> None:
    """Deliver in a thread: the person may be away from the terminal, and a slow channel must not delay the question."""
    if home.config.channels:
        from threading import Thread

        def deliver() -> None:
            with home.reopen() as own:
                own.finish_work()

        Thread(target=deliver, name="deliver", daemon=True).start()


def run_exit_code(run: Run) -> int:
    """Return the exit code of a command that leaves the run in its current state."""
    return exit_code(run.status.state, run.status.reason, run.status.failure)


class Interrupts(SignalListener):
    """Remembers a signal while entered and passes it to the current work, even to work that starts later."""

    def __init__(self) -> None:
        super().__init__(self._handle_signal)
        self.is_interrupted = False
        self._interrupt: Interrupt | None = None
        self._why = StopReason.INTERRUPT
        self._lock = threading.Lock()  # guards the attributes above

    def set_interrupt(self, interrupt: Interrupt) -> None:
        """Set how to interrupt the work that starts now, and do it at once if a signal arrived before."""
        with self._lock:
            self._interrupt = interrupt
            if self.is_interrupted:
                interrupt(self._why)

    def _handle_signal(self, number: int) -> None:
        with self._lock:
            if self.is_interrupted:
                return  # the agent already has its grace time; a second signal changes nothing
            self.is_interrupted = True
            if number == signal.SIGTERM and os.environ.get(DETACHED):
                self._why = StopReason.SHUTDOWN
            if self._interrupt is not None:
                self._interrupt(self._why)
