"""Asks a person at the terminal what a run waits for. The question is in the store: it can be answered anywhere.

Whether to ask is decided by each process from its own terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.inbox import (
    ASK_ANSWERS,
    DOUBT_ANSWERS,
    INTERRUPTED_ANSWERS,
    find_open_questions,
    list_agent_questions,
)
from jackline.app.run_wait import RunWatch
from jackline.cli.answer_input import InputEnd, read_answer
from jackline.domain.call_gate import can_approve_always
from jackline.domain.call_text import describe_length, find_call_folder, format_call
from jackline.errors import Refused, UsageError
from jackline.formatting import make_printable, make_readable, wrap_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

_LATER = "leave it open: it can be answered later, from anywhere"
_APPROVALS = {
    "y": ("allow", "approve the call"),
    "n": ("deny", "deny the call: the agent is told, and continues without it"),
    "a": ("always", "approve it, and every call of this rule with this target in this run"),
}
_WORDS = {"yes": "y", "allow": "y", "no": "n", "deny": "n", "always": "a"}
_DOUBTS = {
    "happened": ("happened", "it took effect: it gets a receipt and is never repeated"),
    "did-not": ("did-not", "it took no effect: the agent may make it"),
    "retry": ("retry", "make the call again"),
    "skip": ("skip", "do not make the call any more"),
}
_INTERRUPTED = {"skip": ("skip", "do not wait for it; without an answer, a resume tells the agent again")}
_CHOICES = {
    ASK_ANSWERS: ("Allow it?", _APPROVALS),
    DOUBT_ANSWERS: ("Did it happen?", _DOUBTS),
    INTERRUPTED_ANSWERS: ("Skip it?", _INTERRUPTED),
}


class CallQuestion(NamedTuple):
    """A call that needs an answer: why, the whole command or edit, the prompt, and what can be typed."""

    call: Call
    reason: str
    command: list[str]  # its lines
    prompt: str
    choices: Mapping[str, tuple[str, str]]  # what is typed → the answer, and what it means

    def parse_answer(self, typed: str) -> str | None:
        """The answer that was typed; None if it is not one of the choices."""
        word = typed.lower()
        found = self.choices.get(word) or self.choices.get(_WORDS.get(word, ""))
        return found[0] if found else None

    def explain(self) -> str:
        """What each choice means, one per line."""
        lines = [f"  {typed:<9} {meaning}" for typed, (_, meaning) in self.choices.items()]
        return "\n".join([*lines, f"  {'Enter':<9} {_LATER}"])


def ask_confirmation(question: str, out: Output) -> bool:
    """Ask a yes-or-no question; an empty line means yes, the end of input means no."""
    while True:
        typed = read_answer(f"{question} [Y/n] ", out)
        answer = typed.text.lower()
        if typed.end is InputEnd.LEFT or answer in {"y", "yes", "n", "no", ""}:
            return typed.end is InputEnd.LINE and answer in {"y", "yes", ""}


def ask_person(home: Home, run: Run, out: Output) -> bool:
    """Ask what the run waits for, until it is answered here or elsewhere; True if a question is left open."""
    watch, shown = RunWatch(home, run.id), ""
    while watch.needs_person():
        questions = list_call_questions(home, watch.load())
        if not questions:
            if not _ask_agent_question(home, watch, out):
                return True
            continue
        question = questions[0]
        if shown != question.call.id:
            columns = out.terminal_width(2) - 1
            for line in [*wrap_text(question.reason, columns), *question.command]:
                out.print_note(line)
        shown = question.call.id
        answer = _read_valid_answer(question, watch, out)
        if answer is None:
            return True
        if answer:
            _record_answer(home, watch.load(), question.call, answer, out)
        else:
            _report_change(home, question.call, out)
        watch.poll()
    return False


def _ask_agent_question(home: Home, watch: RunWatch, out: Output) -> bool:
    """Ask the oldest open question of the run's agent; False if there is none, or it is left open."""
    from jackline.extensions import call_hook

    asked = min(list_agent_questions(home, watch.load()), key=lambda entry: entry.since, default=None)
    if asked is None:
        return False
    for line in wrap_text(make_readable(f"the agent asks: {asked.text}"), out.terminal_width(2) - 1):
        out.print_note(line)
    typed = read_answer("Answer [Enter: later]: ", out, watch.poll)
    if typed.end is InputEnd.CHANGED:
        out.print_note("answered elsewhere")
    elif typed.end is InputEnd.LEFT or not typed.text:
        return False
    else:
        try:
            call_hook("answer_question", home, asked, typed.text)
        except UsageError as error:  # it is too long, or another answer was faster
            out.print_note(make_printable(str(error)))
        watch.poll()
    return True


def list_call_questions(home: Home, run: Run) -> list[CallQuestion]:
    """The open questions about calls of a run."""
    found = find_open_questions(home.store(), run)
    return [build_call_question(home, run, call, answers) for call, answers in found]


def build_call_question(home: Home, run: Run, call: Call, answers: tuple[str, ...]) -> CallQuestion:
    """Build the question about a call; its text has the whole command or edit."""
    whole = home.store().blobs.load_call(call)
    command = format_call(call.tool, whole.input, workspace=run.spec.workspace, folder=find_call_folder(call))
    reason = make_printable(call.reason) or "a person has to decide:"
    lines = _indent(command) + _indent(describe_length(command))
    asks, choices = _CHOICES[answers]
    if not can_approve_always(call.rule, call.target):
        choices = {typed: choice for typed, choice in choices.items() if typed != "a"}
    prompt = f"{asks} [{'/'.join(choices)}, Enter: later, ?: help] "
    return CallQuestion(call=call, reason=reason, command=lines, prompt=prompt, choices=choices)


def _indent(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _read_valid_answer(question: CallQuestion, watch: RunWatch, out: Output) -> str | None:
    """The answer; an empty text if the run has changed meanwhile; None if the question is left open."""
    while True:
        typed = read_answer(question.prompt, out, watch.poll)
        if typed.end is InputEnd.CHANGED:
            return ""
        if typed.end is InputEnd.LEFT or not typed.text:
            return None
        if typed.text == "?":
            out.print_note(question.explain())
        elif (answer := question.parse_answer(typed.text)) is not None:
            return answer
        else:
            shown = make_printable(typed.text)[:40]
            out.print_note(f"'{shown}' is not a valid answer; use {', '.join(question.choices)}")


def _record_answer(home: Home, run: Run, call: Call, answer: str, out: Output) -> None:
    try:
        home.answer(run, call, answer)
    except Refused as error:  # another answer was faster, or another process took the run
        out.print_note(make_printable(str(error)))


def _report_change(home: Home, call: Call, out: Output) -> None:
    """Say what has happened elsewhere to the call that was asked about."""
    now = home.store().calls.get(call.run_id, call.id)
    if now is not None and now.answer:
        out.print_note(f"answered elsewhere: {now.answer}")
    elif now is not None and now.state is not call.state:
        out.print_note(f"settled elsewhere: the call is {now.state}")
