"""`jackline resume`: continues a run that is queued, waiting, failed, or lost its supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, dialogue, report
from jackline.cli.interrupt import Interrupts
from jackline.cli.parser import RUN
from jackline.domain.states import EXIT_PERSON, RunState
from jackline.errors import Refused
from jackline.formatting import pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.records import Run


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--yes", action="store_true", help="continue an interactive run without asking")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if run.spec.imported:
        raise Refused(f"run {run.id} was imported from {run.spec.imported} and is read-only: start another run")
    match run.life.state:
        case RunState.CANCELLED:
            raise Refused(f"run {run.id} is cancelled and cannot be resumed: start another one")
        case RunState.SUCCEEDED:
            # A supervisor killed after its last write may have left the files unwritten.
            if not home.is_archived(run):
                home.export(run)
            return report.tell(home, run, out, carry.code_of(run))
        case _ if not (args.yes or _is_confirmed(run, home, out)):
            return report.tell(home, run, out, EXIT_PERSON)
        case _:
            with Interrupts() as interrupts:
                return carry.carry_on(home, run, out, interrupts)


def _is_confirmed(run: Run, home: Home, out: Output) -> bool:
    """Return whether the run may continue: always in job mode, only if confirmed in interactive mode."""
    if run.spec.mode != dialogue.INTERACTIVE:
        return True
    if not dialogue.is_possible(run, out):
        command = out.command("resume", run.id, "--yes")
        out.note(f"run {run.id} is interactive, and there is no terminal to ask at: run `{command}`")
        return False
    forced = home.store().forced(run.id)
    repeated = f" {pluralize(len(forced), 'call')} will be repeated first." if forced else ""
    return dialogue.confirms(f"run {run.id} is {run.life.state}.{repeated} Continue?", out)
