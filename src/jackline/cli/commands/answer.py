"""`jackline answer`: approves or denies a call, settles one that is in doubt, or answers an agent's question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.app.text_files import shorten_name
from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import QUIET_HELP, RUN_HELP
from jackline.cli.run_json import run_to_json, to_json_values
from jackline.domain.call_text import describe_effect
from jackline.domain.states import Decision, RunState
from jackline.engine.owner_lock import has_waiter
from jackline.errors import Refused, UsageError
from jackline.formatting import make_printable, shorten_text
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence

    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Call, Run

VERDICT_MEANINGS = {
    "happened": "it took effect; it gets a receipt and is never repeated",
    "did-not": "it took no effect; the agent may make it",
    "retry": "make the call (again)",
    "skip": "do not make the call any more",
    "allow": "approve the call",
    "always": "approve it, and later calls of its rule with the same target in this run",
    "deny": "deny the call",
}
WORKS_ON_RUNS = True  # notices are delivered when it is done
INSIDE_RUN = ()
_MOST_RUNS = 200
_MOST_CHARS = 160
_ALWAYS = "always"  # valid wherever a call can be allowed


def configure(parser: CommandParser) -> None:
    parser.takes_flags_between = True
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help=f"{RUN_HELP} (default: the only one of this repository with an open call)"
    )
    parser.add_argument(
        "call",
        metavar="CALL",
        nargs="?",
        help="the id of the call, or its beginning or end (default: the only open one)",
    )
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in VERDICT_MEANINGS.items())
    parser.add_argument(
        "answer", metavar="ANSWER", help=f"{meanings}; or the answer to the question of the run's agent"
    )
    parser.add_argument("--resume", action="store_true", help="continue the run at once")
    parser.add_argument("--quiet", action="store_true", help=f"with --resume: {QUIET_HELP}")
    parser.add_setting("on_ask")


def execute(args: Namespace, home: Home, out: Output) -> int:
    out.quiet = args.quiet
    if args.resume:
        confirm_own_files(home, out)
    run = home.find(args.run) if args.run is not None else None
    if run is not None and args.call is None:
        question = _find_question(home, run, args.answer, out)
        if question is not None:
            return _answer_question(args, home, question, out)
    if args.answer not in VERDICT_MEANINGS:
        raise UsageError(f"'{shorten_name(args.answer)}' is not a valid answer; use {', '.join(VERDICT_MEANINGS)}")
    if run is None or args.call is None:
        run, call = _choose_call(home, run, args.answer, out)
    else:
        call = home.find_call(run, args.call)
    call, run = home.answer(run, call, args.answer)
    return _finish(args, home, run, _format_answer(call, args.answer), {"call": to_json_values(call)}, out)


def _choose_call(home: Home, run: Run | None, answer: str, out: Output) -> tuple[Run, Call]:
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


def _find_question(home: Home, run: Run, answer: str, out: Output) -> InboxEntry | None:
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


def _answer_question(args: Namespace, home: Home, question: InboxEntry, out: Output) -> int:
    from jackline.extensions import call_hook

    call_hook("answer_question", home, question, args.answer)
    text = f"question {question.item_id} is answered; the agent reads it when the run continues"
    return _finish(args, home, home.find(question.run_id), text, {"item": question.item_id}, out)


def _finish(args: Namespace, home: Home, run: Run, text: str, answered: dict[str, object], out: Output) -> int:
    """Report the answer, and continue the run if that is wanted."""
    if args.resume:
        if not out.quiet:
            out.print_note(text)
        with Interrupts() as interrupts:
            return follow_run.follow_run(home, run, out, interrupts, args.on_ask)
    if out.json:
        out.print_json({"run": run_to_json(home, run), **answered})
        return 0
    out.print_line(text)
    if run.status.state is RunState.QUEUED and has_waiter(home.folder(run.id)):
        follow = out.format_command("logs", "-f", run.id)
        out.print_line(f"  the process that waits for the answer continues it; follow: {follow}")
        return 0
    if run.status.state is RunState.QUEUED and home.has_service():
        out.print_line(f"  a running service continues it; follow: {out.format_command('logs', '-f', run.id)}")
        return 0
    for line in status_text.list_next_steps(home, run, out):
        out.print_line(f"  {line}")
    return 0


def _format_answer(call: Call, verdict: str) -> str:
    # The ledger keeps a call that needed approval as denied: an approved one is made as a new call.
    state = "answered" if call.decision is Decision.ASK else f"is {call.state}"
    return f"call {call.id} {make_printable(call.tool)} {state}: {VERDICT_MEANINGS[verdict]}"
