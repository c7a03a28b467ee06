"""Works on a run until it ends or waits, prints its progress, asks its questions, and prints the outcome.

`run`, `resume`, `fork` and `answer --resume` share this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import dialogue, report
from jackline.cli.progress import Progress
from jackline.domain.states import EXIT_INTERRUPTED, RunState, WaitReason, exit_code

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.cli.interrupt import Interrupts
    from jackline.cli.output import Output
    from jackline.domain.records import Run


def carry_on(home: Home, run: Run, out: Output, interrupts: Interrupts) -> int:
    """Work on the run and return the exit code for the state it is left in."""
    while not interrupts.pressed:  # a signal that came before the claim: leave the run to others
        with Progress(home, run, out):
            run = home.work(run, interrupts.on_start)
        while home.warnings:
            out.note(home.warnings.pop(0))
        can_ask = dialogue.is_possible(run, out) and not interrupts.pressed
        answered = dialogue.settle(home, run, out) if can_ask else None
        if answered is None:
            break
        run = answered
    # Interrupted between two attempts, a run is queued or waits for its retry; it was stopped all the same.
    between_attempts = run.life.state is RunState.QUEUED or run.life.reason is WaitReason.RETRY
    code = EXIT_INTERRUPTED if interrupts.pressed and between_attempts else code_of(run)
    return report.tell(home, run, out, code)


def code_of(run: Run) -> int:
    """Return the exit code of a command that leaves the run in its current state."""
    return exit_code(run.life.state, run.life.reason, run.life.failure)
