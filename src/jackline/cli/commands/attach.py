"""`jackline attach`: shows what a run has done, then what it does, whichever process works on it. It only reads.

Ctrl-C detaches: no signal reaches the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.run_wait import POLL_SECONDS, build_pause
from jackline.cli import status_text
from jackline.cli.follow_run import Interrupts, run_exit_code
from jackline.cli.log_stream import build_follow, note_archived, print_output, print_transcript
from jackline.cli.parser import NEWEST_HELP
from jackline.cli.run_choice import find_run
from jackline.domain.states import PERSON_NEEDED, RunState
from jackline.engine.owner_lock import has_waiter

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.app.run_wait import Pause
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run
    from jackline.domain.states import WaitReason

INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help=NEWEST_HELP)
    parser.add_argument(
        "--tmux", action="store_true", help="show the tmux session of a run that was started with `run --tmux`"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = find_run(home, args.run)
    if args.tmux:
        from jackline.cli.tmux_run import show_run_session

        return show_run_session(home, run, out)
    with Interrupts() as interrupts:
        _RunAttachment(home, run, out, build_pause(interrupts.set_interrupt)).show()
    run = home.store().runs.get(run.id) or run
    if interrupts.is_interrupted:
        again = out.format_command("attach", run.id)
        out.print_note(f"detached from run {run.id} (#{run.number}), which is {run.status.state}; again: {again}")
        return 0
    return _print_end(home, run, out)


def _print_end(home: Home, run: Run, out: Output) -> int:
    """Print the state in which the run was left, and the next steps; its last message was printed before."""
    out.quiet = True
    code = status_text.print_outcome(home, run, out, run_exit_code(run))
    if loss := home.explain_loss(run):
        out.print_note(status_text.format_loss(run.id, loss, out))
    elif run.status.state is RunState.WAITING and run.status.reason in PERSON_NEEDED:
        out.print_note(f"or answer it with all that needs you: {out.format_command('inbox')}")
    return code


class _RunAttachment:
    """Shows a run until it stops, or until a pause is interrupted."""

    def __init__(self, home: Home, run: Run, out: Output, pause: Pause) -> None:
        self._home, self._run, self._out, self._pause = home, run, out, pause
        self._clear_line: Callable[[], None] = lambda: None
        self._follow = build_follow(home, run, out, self._note)
        self._asked: WaitReason | None = None  # why a process waits for a person, to continue the run afterwards

    def show(self) -> None:
        """Print the history, then what is added."""
        home, run, out = self._home, self._run, self._out
        if run.spec.imported:  # other programs kept the output only
            print_output(home, run, out)
        elif not out.json and out.stdout.is_terminal and out.stderr.is_terminal:
            self._show_live()
            note_archived(home, run, out)
        else:
            print_transcript(home, run, out, follow=self._has_process, pause=self._wait)

    def _show_live(self) -> None:
        from jackline.cli.progress import REFRESH_SECONDS, LivePrinter
        from jackline.cli.transcript_view import TranscriptView

        store = self._home.store()
        view = TranscriptView(store, self._run, self._out, None, shows_starts=True)
        printer = LivePrinter(self._run, self._out, store, transcript=view)
        self._clear_line = printer.clear
        try:
            while not self._out.stderr.is_closed:
                goes_on = self._has_process()  # checked before reading: the last entry is not missed
                printer.print_news()
                if not goes_on or self._wait(REFRESH_SECONDS):
                    break
        finally:
            printer.clear()

    def _has_process(self) -> bool:
        """Whether a process works on the run, starts it, or waits for a person's answer to continue it."""
        if self._follow():
            self._asked = None
            return True
        status = (self._home.store().runs.get(self._run.id) or self._run).status
        waits = status.state is RunState.WAITING and status.reason in PERSON_NEEDED
        if not waits or not has_waiter(self._home.folder(self._run.id)):
            return False
        if self._asked is None:
            inbox = self._out.format_command("inbox")
            self._note(f"run {self._run.id} waits for a person ({status.reason}): answer there, or {inbox}")
        self._asked = status.reason
        return True

    def _note(self, text: str) -> None:
        self._clear_line()
        self._out.print_note(text)

    def _wait(self, seconds: float) -> bool:
        return self._pause(POLL_SECONDS if self._asked else seconds)
