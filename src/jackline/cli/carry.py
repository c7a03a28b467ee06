"""Stay with a run until it ends or waits, and tell how it stands: what `run` and `resume` have in common."""

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
    """Work on the run; the exit code says how it stands then."""
    while not interrupts.pressed:  # else nobody has claimed it yet, and nobody should
        with Progress(home, run, out):
            run = home.work(run, interrupts.on_start)
        while home.warnings:
            out.note(home.warnings.pop(0))
        asks = dialogue.is_possible(run, out) and not interrupts.pressed
        answered = dialogue.settle(home, run, out) if asks else None
        if answered is None:
            break
        run = answered
    return report.tell(home, run, out, _code(run, pressed=interrupts.pressed))


def code_of(run: Run) -> int:
    """The exit code of a command that leaves the run so."""
    return exit_code(run.life.state, run.life.reason, run.life.failure)


def _code(run: Run, *, pressed: bool) -> int:
    """Interrupted between two attempts, a run is queued or waits for its retry; a person stopped it still."""
    between = run.life.state is RunState.QUEUED or run.life.reason is WaitReason.RETRY
    return EXIT_INTERRUPTED if pressed and between else code_of(run)
