"""`jackline resume`: carry on a run that is queued, waits, failed, or lost its supervisor."""

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
    parser.add_argument("--yes", action="store_true", help="go on with an interactive run without asking")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if run.spec.imported:
        kept = f"run {run.id} was imported from {run.spec.imported}: it has no frozen policy, and is kept to be read"
        raise Refused(f"{kept}; start another run")
    match run.life.state:
        case RunState.CANCELLED:
            raise Refused(f"run {run.id} has been cancelled, and nothing reopens it: start another one")
        case RunState.SUCCEEDED:
            # Whoever was killed after the last write cannot know that all was done: it is told how it stands.
            if not home.is_archived(run):
                home.export(run)
            return report.tell(home, run, out, carry.code_of(run))
        case _ if not (args.yes or _agrees(run, home, out)):
            return report.tell(home, run, out, EXIT_PERSON)
        case _:
            with Interrupts() as interrupts:
                return carry.carry_on(home, run, out, interrupts)


def _agrees(run: Run, home: Home, out: Output) -> bool:
    """A run in job mode goes on by itself; one in interactive mode asks, and never goes on unasked."""
    if run.spec.mode != dialogue.INTERACTIVE:
        return True
    if not dialogue.is_possible(run, out):
        agreed = out.command("resume", run.id, "--yes")
        out.note(f"run {run.id} is interactive, and there is no terminal to ask at: `{agreed}` goes on")
        return False
    forced = home.store().forced(run.id)
    again = f" {pluralize(len(forced), 'call')} will be made again first." if forced else ""
    return dialogue.confirms(f"run {run.id} is {run.life.state}.{again} Go on?", out)
