"""Finds the call or question that an answer without an id means; if several fit, it prints the command for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.domain.call_text import describe_effect
from jackline.domain.states import RunState
from jackline.errors import Refused, UsageError
from jackline.formatting import make_printable, shorten_text
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

_MOST_RUNS = 200
_MOST_CHARS = 160
_ALWAYS = "always"  # valid wherever a call can be allowed


def choose_call(home: Home, run: Run | None, answer: str, out: Output) -> tuple[Run, Call]:
    """The only open call of the run, or of this repository; Refused if there is none, UsageError if several fit."""
    runs = [run] if run is not None else _list_waiting_runs(home)
    found = [(one, call, answers) for one in runs for call, answers in inbox.find_open_questions(home.store(), one)]
    fitting = [(one, call) for one, call, answers in found if _fits(answer, answers)]
    if run is not None and len(fitting) == 1:
        return fitting[0]
    if run is None and len(found) == 1 and fitting:
        return fitting[0]
    where = f"run {run.id} has" if run is not None else "this repository has"
    if not found:
        hint = out.format_command("inbox")
        raise Refused(f"{where} no call that waits for an answer: `{hint}` lists everything that needs a person")
    _print_commands(((one, call, answers) for one, call, answers in found), out)
    if not fitting:
        raise UsageError(f"'{answer}' does not fit the open call: use one of the commands above")
    raise UsageError(f"{where} {len(found)} calls that wait for an answer: use one of the commands above")


def find_question(home: Home, run: Run, answer: str, out: Output) -> InboxEntry | None:
    """The only open question of the run's agent, if the answer is for it; None if it is for a call."""
    if any(_fits(answer, answers) for _, answers in inbox.find_open_questions(home.store(), run)):
        return None
    asked = inbox.list_agent_questions(home, run)
    if len(asked) > 1:
        for entry in asked:
            out.print_note(f"  {make_printable(shorten_text(entry.text, _MOST_CHARS))}")
            out.print_note(f"    {out.format_command(*entry.commands[0])}")
        raise UsageError(f"run {run.id} has {len(asked)} open questions: use one of the commands above")
    return asked[0] if asked else None


def _list_waiting_runs(home: Home) -> list[Run]:
    import os

    from jackline.domain.ids import repository_id
    from jackline.worktrees import find_repository

    repository = repository_id(find_repository(os.getcwd()))
    query = RunQuery(states=(str(RunState.WAITING),), repository=repository, limit=_MOST_RUNS)
    runs = (home.store().runs.get(row.id) for row in home.list_runs(query))
    return [run for run in runs if run is not None]


def _fits(answer: str, answers: Sequence[str]) -> bool:
    return answer in answers or (answer == _ALWAYS and answers == inbox.ASK_ANSWERS)


def _print_commands(found: Iterable[tuple[Run, Call, tuple[str, ...]]], out: Output) -> None:
    for run, call, answers in found:
        out.print_note(f"  {shorten_text(make_printable(describe_effect(call, run.spec.workspace)), _MOST_CHARS)}")
        for answer in answers:
            out.print_note(f"    {out.format_command('answer', run.id, call.id, answer)}")
