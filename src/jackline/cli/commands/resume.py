"""`jackline resume`: carry on a run that is queued, waits, failed, or lost its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.interrupt import Interrupts
from jackline.cli.parser import RUN
from jackline.domain.states import RunState
from jackline.errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    match run.life.state:
        case RunState.CANCELLED:
            raise Refused(f"run {run.id} has been cancelled, and nothing reopens it: start another one")
        case RunState.SUCCEEDED:
            # Whoever was killed after the last write cannot know that all was done: it is told how it stands.
            if not home.is_archived(run):
                home.export(run)
            return report.tell(home, run, out, carry.code_of(run))
        case _:
            with Interrupts() as interrupts:
                return carry.carry_on(home, run, out, interrupts)
