"""`jackline answer`: approves or denies a call, or settles one that is in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.interrupt import Interrupts
from jackline.cli.parser import RUN
from jackline.cli.record import run_record, values
from jackline.domain.states import Decision

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.records import Call

MEANINGS = {
    "happened": "it took effect; it gets a receipt and is never repeated",
    "did-not": "it took no effect; the agent may make it",
    "retry": "make the call (again)",
    "skip": "do not make the call any more",
    "allow": "approve the call",
    "deny": "deny the call",
}


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("call", metavar="CALL", help="the id of the call, or its beginning or end")
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items())
    parser.add_argument("verdict", metavar="VERDICT", choices=tuple(MEANINGS), help=meanings)
    parser.add_argument("--resume", action="store_true", help="continue the run at once")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    call, run = home.answer(run, home.find_call(run, args.call), args.verdict)
    if args.resume:
        out.note(_format_answer(call, args.verdict))
        with Interrupts() as interrupts:
            return carry.carry_on(home, run, out, interrupts)
    if out.json:
        out.json_line({"run": run_record(home, run), "call": values(call)})
        return 0
    out.line(_format_answer(call, args.verdict))
    for line in report.next_steps(home, run, out):
        out.line(f"  {line}")
    return 0


def _format_answer(call: Call, verdict: str) -> str:
    # The ledger keeps a call that needed approval as denied: an approved one is made as a new call.
    state = "answered" if call.decision is Decision.ASK else f"is {call.state}"
    return f"call {call.id} {call.tool} {state}: {MEANINGS[verdict]}"
