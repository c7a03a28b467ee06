"""Questions to a person at a terminal, for runs in interactive mode. Without a terminal nobody is asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jackline.cli import report, words
from jackline.domain.states import RunState, WaitReason

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

INTERACTIVE = "interactive"
_ASKED = frozenset({WaitReason.APPROVAL, WaitReason.IN_DOUBT, WaitReason.HUMAN})
_SHOWN = 400


def is_possible(run: Run, out: Output) -> bool:
    """Whether the run is one that asks, and somebody is there to answer."""
    there = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    return run.spec.mode == INTERACTIVE and there and not out.json


def confirms(question: str, out: Output) -> bool:
    """A yes, which is also the empty answer."""
    return _ask(f"{question} [Y/n]", ("y", "yes", "n", "no", ""), out) in {"y", "yes", ""}


def settle(home: Home, run: Run, out: Output) -> Run | None:
    """Ask about every call that the run waits for; None if a question was left open or nothing was asked."""
    if run.life.state is not RunState.WAITING or run.life.reason not in _ASKED:
        return None
    for call, answers in report.awaiting(home, run):
        said = _ask(_question(call, answers), tuple(answers.split("|")), out)
        if not said:
            return None
        _, run = home.answer(run, call, said)
    return run if run.life.state is RunState.QUEUED else None


def _question(call: Call, answers: str) -> str:
    touched = f" → {words.printable(call.target)}" if call.target else ""
    reason = f"\n  {words.printable(call.reason)}" if call.reason else ""
    given = words.printable(call.input[:_SHOWN])
    return f"{words.printable(call.tool)}{touched}{reason}\n  {given}\n{answers}, or nothing to leave it open:"


def _ask(question: str, known: tuple[str, ...], out: Output) -> str:
    """One of the known answers; empty where the person gives none."""
    while True:
        out.note(question)
        line = sys.stdin.readline()
        said = line.strip().lower()
        if said in known or not said or not line:
            return said
        out.note(f"'{words.printable(said)}' is no answer here: say {', '.join(filter(None, known))}")
