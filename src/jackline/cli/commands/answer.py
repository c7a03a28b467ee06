"""`jackline answer`: approves or denies a call, or settles one that is in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.parser import RUN_HELP
from jackline.cli.run_json import run_to_json, to_json_values
from jackline.domain.states import Decision

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Call

VERDICT_MEANINGS = {
    "happened": "it took effect; it gets a receipt and is never repeated",
    "did-not": "it took no effect; the agent may make it",
    "retry": "make the call (again)",
    "skip": "do not make the call any more",
    "allow": "approve the call",
    "always": "approve it, and later calls of its rule with the same target in this run",
    "deny": "deny the call",
}


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("call", metavar="CALL", help="the id of the call, or its beginning or end")
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in VERDICT_MEANINGS.items())
    parser.add_argument("verdict", metavar="VERDICT", choices=tuple(VERDICT_MEANINGS), help=meanings)
    parser.add_argument("--resume", action="store_true", help="continue the run at once")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    call, run = home.answer(run, home.find_call(run, args.call), args.verdict)
    if args.resume:
        out.print_note(_format_answer(call, args.verdict))
        with Interrupts() as interrupts:
            return follow_run.follow_run(home, run, out, interrupts)
    if out.json:
        out.print_json({"run": run_to_json(home, run), "call": to_json_values(call)})
        return 0
    out.print_line(_format_answer(call, args.verdict))
    for line in status_text.list_next_steps(home, run, out):
        out.print_line(f"  {line}")
    return 0


def _format_answer(call: Call, verdict: str) -> str:
    # The ledger keeps a call that needed approval as denied: an approved one is made as a new call.
    state = "answered" if call.decision is Decision.ASK else f"is {call.state}"
    return f"call {call.id} {call.tool} {state}: {VERDICT_MEANINGS[verdict]}"
