"""Questions at a terminal, for runs in interactive mode. Without a terminal nothing is asked."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from jackline.cli import status_text
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

INTERACTIVE = "interactive"
_ASKABLE = frozenset({WaitReason.APPROVAL, WaitReason.IN_DOUBT, WaitReason.HUMAN})
_MAX_INPUT_CHARS = 400
_INTERRUPT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def can_ask(run: Run, out: Output) -> bool:
    """Return whether the run is interactive and a terminal is there to answer at."""
    has_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    return run.spec.mode == INTERACTIVE and has_terminal and not out.json


def ask_confirmation(question: str, out: Output) -> bool:
    """Ask a yes-or-no question; an empty line means yes, the end of input means no."""
    return _ask(f"{question} [Y/n]", ("y", "yes", "n", "no"), out) in {"y", "yes", ""}


def ask_open_questions(home: Home, run: Run, out: Output) -> Run | None:
    """Ask about each call that the run waits for; return None if a question stays open or there is none."""
    if run.status.state is not RunState.WAITING or run.status.reason not in _ASKABLE:
        return None
    for call, answers in status_text.find_open_questions(home, run):
        answer = _ask(_format_question(call, answers), answers, out)
        if not answer:
            return None
        _, run = home.answer(run, call, answer)
    return run if run.status.state is RunState.QUEUED else None


def _format_question(call: Call, answers: tuple[str, ...]) -> str:
    target = f" → {make_printable(call.target)}" if call.target else ""
    reason = f"\n  {make_printable(call.reason)}" if call.reason else ""
    tool_input = make_printable(call.input[:_MAX_INPUT_CHARS])
    choices = ", ".join(answers)
    return f"{make_printable(call.tool)}{target}{reason}\n  {tool_input}\n{choices}, or Enter to leave it open:"


def _ask(question: str, choices: tuple[str, ...], out: Output) -> str | None:
    """Return one of the choices, an empty text for an empty line, or None at the end of input or Ctrl-C."""
    with _interruptible():
        try:
            while True:
                out.print_note(question)
                line = _read_line()
                answer = line.strip().lower()
                if not line:
                    return None
                if answer in choices or not answer:
                    return answer
                out.print_note(f"'{make_printable(answer)}' is not a valid answer; use {', '.join(choices)}")
        except KeyboardInterrupt:  # it ends the question; the command then prints the state of the run
            return None


def _read_line() -> str:
    """Read a line, whatever its bytes; empty at the end of input."""
    try:
        return sys.stdin.buffer.readline().decode("utf-8", "replace")
    except OSError:  # the terminal was closed
        return ""


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let a signal end a question at once; elsewhere signals only ask the run to park."""
    handlers = [(number, signal.getsignal(number)) for number in _INTERRUPT_SIGNALS]
    replaced = [(number, handler) for number, handler in handlers if handler is not signal.SIG_IGN]
    for number, _ in replaced:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in replaced:
            signal.signal(number, handler)
