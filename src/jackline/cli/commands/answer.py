"""`jackline answer`: a person's word on a call that is in doubt or was asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.interrupt import Interrupts
from jackline.cli.parser import RUN
from jackline.cli.record import run_record, values
from jackline.domain.states import Decision, RunState

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.records import Call, Run

MEANINGS = {
    "happened": "it took effect; it gets a receipt and is never done again",
    "did-not": "it took no effect; the agent may do it",
    "retry": "it shall be done (again)",
    "skip": "it shall not be done any more",
    "allow": "the call that asked may be made",
    "deny": "the call that asked must not be made",
}


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("call", metavar="CALL", help="the call's id, its beginning or its end")
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in MEANINGS.items())
    parser.add_argument("verdict", metavar="VERDICT", choices=tuple(MEANINGS), help=meanings)
    parser.add_argument("--resume", action="store_true", help="carry the run on at once")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    call, run = home.answer(run, home.find_call(run, args.call), args.verdict)
    if args.resume:
        out.note(_said(call, args.verdict))
        with Interrupts() as interrupts:
            return carry.carry_on(home, run, out, interrupts)
    if out.json:
        out.json_line({"run": run_record(home, run), "call": values(call)})
        return 0
    out.line(_said(call, args.verdict))
    for line in _next(home, run, out):
        out.line(f"  {line}")
    return 0


def _said(call: Call, verdict: str) -> str:
    # A call that asked stands as denied in the ledger, whatever was answered: it is made anew.
    state = "answered" if call.decision is Decision.ASK else f"is {call.state}"
    return f"call {call.id} {call.tool} {state}: {MEANINGS[verdict]}"


def _next(home: Home, run: Run, out: Output) -> list[str]:
    if run.life.state is RunState.QUEUED:
        return [f"go on: {out.command('resume', run.id)}"]
    return report.next_steps(home, run, out)
