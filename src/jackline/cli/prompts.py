"""Asks a person at the terminal what needs one. The questions are in the store: the first answer from anywhere counts.

Whether to ask is decided by each process from its own terminal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.app.run_wait import RunWatch
from jackline.cli.answer_input import InputEnd, read_answer
from jackline.cli.inbox_text import format_body
from jackline.domain.call_gate import can_approve_always
from jackline.errors import JacklineError, StoreUnavailable
from jackline.extensions import call_hook
from jackline.formatting import make_printable, make_readable, wrap_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.cli.output import Output
    from jackline.domain.records import Run

LATER = "Enter: later, ?: help"
_PROMPTS = {inbox.APPROVAL: "Allow it?", inbox.IN_DOUBT: "Did it happen?", inbox.INTERRUPTED: "Skip it?"}
_CHOICES = {  # what is typed → the answer, and what it means
    inbox.APPROVAL: {
        "y": ("allow", "approve the call"),
        "n": ("deny", "deny the call: the agent is told, and continues without it"),
        "a": ("always", "approve it, and every call of this rule with this target in this run"),
    },
    inbox.IN_DOUBT: {
        "happened": ("happened", "it took effect: it gets a receipt and is never repeated"),
        "did-not": ("did-not", "it took no effect: the agent may make it"),
        "retry": ("retry", "make the call again"),
        "skip": ("skip", "do not make the call any more"),
    },
    inbox.INTERRUPTED: {"skip": ("skip", "do not wait for it; without an answer, a resume tells the agent again")},
}
_WORDS = {"yes": "y", "allow": "y", "no": "n", "deny": "n", "always": "a"}
_LATER_HELP = f"  {'Enter':<9} leave it open: it can be answered later, from anywhere"
_ITEM_HELP = "type the answer in one line; the agent reads it when it continues. Enter leaves the question open"


class Question(NamedTuple):
    """What is asked, and what is done with what was typed."""

    prompt: str
    help: str
    answer: Callable[[str], str]  # stores what was typed; what to print, or JacklineError
    find_change: Callable[[], str] = lambda: ""  # what has happened elsewhere; empty while the question is open


class AskEnd(StrEnum):
    """How a question at the terminal ended."""

    ANSWERED = "answered"
    CHANGED = "changed"  # elsewhere
    LATER = "later"
    LEFT = "left"


def ask_confirmation(question: str, out: Output, *, default: bool = True) -> bool:
    """Ask a yes-or-no question; an empty line means `default`, the end of input means no."""
    while True:
        typed = read_answer(f"{question} [{'Y/n' if default else 'y/N'}] ", out)
        answer = typed.text.lower() or ("y" if default else "n")
        if typed.end is InputEnd.LEFT or answer in {"y", "yes", "n", "no"}:
            return typed.end is InputEnd.LINE and answer in {"y", "yes"}


def ask_question(question: Question, out: Output) -> AskEnd:
    """Ask until there is a valid answer here or from elsewhere, or none is wanted now."""
    change = ""

    def has_changed() -> bool:
        nonlocal change
        with contextlib.suppress(StoreUnavailable):  # asked again later
            change = question.find_change()
        return bool(change)

    while True:
        typed = read_answer(question.prompt, out, has_changed)
        if typed.end is InputEnd.LEFT:
            return AskEnd.LEFT
        if typed.end is InputEnd.LINE and not typed.text:
            return AskEnd.LATER
        if typed.text == "?":
            out.print_note(question.help)
        elif typed.text:
            try:
                out.print_note(make_printable(question.answer(typed.text)))
            except JacklineError as error:  # not valid, or another answer was faster
                out.print_note(make_printable(str(error)))
                has_changed()
            else:
                return AskEnd.ANSWERED
        if change:
            out.print_note(make_printable(change))
            return AskEnd.CHANGED


def ask_person(home: Home, run: Run, out: Output) -> bool:
    """Ask what the run waits for, until it is answered here or elsewhere; True if a question is left open."""
    watch = RunWatch(home, run.id)
    while watch.needs_person():
        run = watch.load()
        asked = [entry for entry in inbox.list_run_entries(home, run) if entry.call_id]
        asked += sorted(inbox.list_agent_questions(home, run), key=lambda entry: entry.since)
        question = build_question(home, asked[0], run) if asked else None
        if question is None:
            return True
        for line in _format_introduction(asked[0], out.terminal_width(2) - 1):
            out.print_note(line)
        if ask_question(question, out) in {AskEnd.LATER, AskEnd.LEFT}:
            return True
        watch.poll()
    return False


def _format_introduction(entry: InboxEntry, columns: int) -> list[str]:
    """Why a person is asked, wrapped, and the whole command or edit."""
    if entry.item_id:
        return wrap_text(make_readable(f"the agent asks: {entry.text}"), columns)
    why = wrap_text(make_printable(entry.detail) or "a person has to decide:", columns)
    return [*why, *(f"  {line}" for line in format_body(entry._replace(detail="")))]


def build_question(home: Home, entry: InboxEntry, run: Run | None) -> Question | None:
    """The question about a call of the run, or of an agent; None if it is no longer open.

    A run that changes is no longer asked about. Its agent may ask while it works: then leave `run` out.
    """
    if entry.item_id:
        return _build_item_question(home, entry, run)
    call = home.store().calls.get(entry.run_id, entry.call_id)
    if run is None or call is None or all(one.id != call.id for one, _ in inbox.find_open_questions(home.store(), run)):
        return None
    covers = can_approve_always(call.rule, call.target)
    choices = {typed: choice for typed, choice in _CHOICES[entry.kind].items() if typed != "a" or covers}

    def answer(text: str) -> str:
        word = text.lower()
        choice = choices.get(word) or choices.get(_WORDS.get(word, ""))
        if choice is None:
            raise JacklineError(f"'{text[:40]}' is not a valid answer; use {', '.join(choices)}")
        home.answer(run, call, choice[0])
        return f"stored: {choice[0]}"

    def find_change() -> str:
        now = home.store().calls.get(call.run_id, call.id) or call
        if now.answer:
            return f"answered elsewhere: {now.answer}"
        if now.state is not call.state:
            return f"settled elsewhere: the call is {now.state}"
        return find_run_change(home, run)

    meanings = [f"  {typed:<9} {meaning}" for typed, (_, meaning) in choices.items()]
    return Question(
        prompt=f"{_PROMPTS[entry.kind]} [{'/'.join(choices)}, {LATER}] ",
        help="\n".join([*meanings, _LATER_HELP]),
        answer=answer,
        find_change=find_change,
    )


def _build_item_question(home: Home, entry: InboxEntry, run: Run | None) -> Question:
    def answer(text: str) -> str:
        call_hook("answer_question", home, entry, text)
        return "stored"

    def find_change() -> str:
        open_entries = [one for entries in call_hook("inbox_entries", home) for one in entries]
        if all(one.item_id != entry.item_id for one in open_entries):
            return "answered elsewhere"
        return find_run_change(home, run) if run is not None else ""

    return Question(f"Answer [{LATER}]: ", _ITEM_HELP, answer, find_change)


def find_run_change(home: Home, run: Run) -> str:
    """What has become of the run since it was read; empty while it waits as before, and its time is not over."""
    watch = RunWatch(home, run.id)
    if not watch.is_same(run):
        return f"run {run.id} has changed in the meantime: it is {watch.load().status.state}"
    return "the time for an answer is over" if watch.is_due() else ""
