"""`jackline fork`: starts a new run from a checkpoint of another one."""

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
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the new task (default: the prompt of the run)")
    parser.add_argument("--step", metavar="N", type=whole_number, help="the step to start from (default: the last)")
    parser.add_argument("--run-id", metavar="ID", help="choose the run's id; repeating the command does not repeat it")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.forking import fork

    home.refuse_problem()
    parent = home.find(args.run)
    with Interrupts() as interrupts:
        run = fork(home, parent, step=args.step, prompt=args.prompt or "", run_id=args.run_id or "")
        out.note(f"run {run.id} starts from step {run.forked_at} of {parent.id}")
        if run.life.state in TERMINAL:  # only with --run-id: the run has ended before, and does not run again
            return report.tell(home, run, out, carry.code_of(run))
        return carry.carry_on(home, run, out, interrupts)
