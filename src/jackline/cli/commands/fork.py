"""`jackline fork`: starts a new run from a checkpoint of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import RUN_HELP, parse_count
from jackline.domain.states import TERMINAL

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

WORKS_ON_RUNS = True  # notices are delivered when it is done
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.takes_flags_between = True
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the new task (default: the prompt of the run)")
    parser.add_argument("--step", metavar="N", type=parse_count, help="the step to start from (default: the last)")
    parser.add_argument("--run-id", metavar="ID", help="choose the run's id; repeating the command does not repeat it")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.fork import fork_run

    home.refuse_broken_project()
    confirm_own_files(home, out)
    parent = home.find(args.run)
    with Interrupts() as interrupts:
        run = fork_run(home, parent, step=args.step, prompt=args.prompt or "", run_id=args.run_id or "")
        out.print_note(f"run {run.id} starts from step {run.forked_at} of {parent.id}")
        if run.status.state in TERMINAL:  # only with --run-id: the run has ended before, and does not run again
            return status_text.print_outcome(home, run, out, follow_run.run_exit_code(run))
        return follow_run.follow_run(home, run, out, interrupts)
