"""`jackline fork`: a new run that goes on from a checkpoint of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.interrupt import Interrupts
from jackline.cli.parser import RUN, whole_number
from jackline.domain.states import TERMINAL

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what to do now (default: what the run was asked)")
    parser.add_argument("--step", metavar="N", type=whole_number, help="the step to go on from (default: the last)")
    parser.add_argument("--run-id", metavar="ID", help="choose the id, idempotently")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.forking import fork

    home.refuse_problem()
    parent = home.find(args.run)
    with Interrupts() as interrupts:
        run = fork(home, parent, step=args.step, prompt=args.prompt or "", run_id=args.run_id or "")
        out.note(f"run {run.id} goes on from step {run.forked_at} of {parent.id}")
        if run.life.state in TERMINAL:  # only with --run-id: it was done before, and is not done again
            return report.tell(home, run, out, carry.code_of(run))
        return carry.carry_on(home, run, out, interrupts)
