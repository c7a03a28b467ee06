"""`jackline answer`: approves or denies a call, settles one that is in doubt, or answers an agent's question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.text_files import shorten_name
from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.open_call import choose_call, find_question
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import QUIET_HELP, RUN_HELP
from jackline.cli.run_json import run_to_json, to_json_values
from jackline.domain.states import Decision, RunState
from jackline.engine.owner_lock import has_waiter
from jackline.errors import UsageError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

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
        question = find_question(home, run, args.answer, out)
        if question is not None:
            return _answer_question(args, home, question, out)
    if args.answer not in VERDICT_MEANINGS:
        raise UsageError(f"'{shorten_name(args.answer)}' is not a valid answer; use {', '.join(VERDICT_MEANINGS)}")
    if run is None or args.call is None:
        run, call = choose_call(home, run, args.answer, out)
    else:
        call = home.find_call(run, args.call)
    call, run = home.answer(run, call, args.answer)
    return _finish(args, home, run, _format_answer(call, args.answer), {"call": to_json_values(call)}, out)


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
