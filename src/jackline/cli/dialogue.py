"""Questions to a person at a terminal, for runs in interactive mode. Without a terminal nobody is asked."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from jackline.cli import report
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

INTERACTIVE = "interactive"
_ASKED = frozenset({WaitReason.APPROVAL, WaitReason.IN_DOUBT, WaitReason.HUMAN})
_SHOWN = 400
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_possible(run: Run, out: Output) -> bool:
    """Whether the run is one that asks, and somebody is there to answer."""
    there = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    return run.spec.mode == INTERACTIVE and there and not out.json


def confirms(question: str, out: Output) -> bool:
    """A yes, which is also the empty line; but not the end of the input."""
    return _ask(f"{question} [Y/n]", ("y", "yes", "n", "no"), out) in {"y", "yes", ""}


def settle(home: Home, run: Run, out: Output) -> Run | None:
    """Ask about every call that the run waits for; None if a question was left open or nothing was asked."""
    if run.life.state is not RunState.WAITING or run.life.reason not in _ASKED:
        return None
    for call, answers in report.awaiting(home, run):
        said = _ask(_question(call, answers), answers, out)
        if not said:
            return None
        _, run = home.answer(run, call, said)
    return run if run.life.state is RunState.QUEUED else None


def _question(call: Call, answers: tuple[str, ...]) -> str:
    touched = f" → {make_printable(call.target)}" if call.target else ""
    reason = f"\n  {make_printable(call.reason)}" if call.reason else ""
    given = make_printable(call.input[:_SHOWN])
    choices = ", ".join(answers)
    return f"{make_printable(call.tool)}{touched}{reason}\n  {given}\n{choices}, or nothing to leave it open:"


def _ask(question: str, known: tuple[str, ...], out: Output) -> str | None:
    """One of the known answers; empty where the person gives none, None where nobody is there any more."""
    with _interruptible():
        try:
            return _answered(question, known, out)
        except KeyboardInterrupt:  # it ends the question; the command says how the run stands
            return None


def _answered(question: str, known: tuple[str, ...], out: Output) -> str | None:
    while True:
        out.note(question)
        line = _line()
        said = line.strip().lower()
        if not line or said in known or not said:
            return said if line else None
        out.note(f"'{make_printable(said)}' is no answer here: say {', '.join(known)}")


def _line() -> str:
    """What is typed, whatever its bytes; empty where nobody can type any more."""
    try:
        return sys.stdin.buffer.readline().decode("utf-8", "replace")
    except OSError:  # the terminal was closed
        return ""


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """While a run is worked on, signals only ask it to park; a question has to end at once."""
    before = [(one, signal.getsignal(one)) for one in _SIGNALS]
    heeded = [(one, handler) for one, handler in before if handler is not signal.SIG_IGN]
    for one, _ in heeded:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one, handler in heeded:
            signal.signal(one, handler)
