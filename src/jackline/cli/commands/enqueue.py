"""`jackline enqueue`: puts runs into the queue, from which a service starts them. It starts none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.cli.output import parse_columns
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import RUN_ID_HELP
from jackline.cli.queue_args import add_queue_arguments, build_wanted_runs
from jackline.cli.queue_text import HELD, explain_waits
from jackline.cli.run_args import add_request_flags
from jackline.cli.run_json import run_to_json
from jackline.domain.states import EXIT_CANCELLED, RunState
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.app.run_creation import CreatedRun
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run

INSIDE_RUN = ()
_COLUMNS = parse_columns("RUN #> STATE* PROMPT~")


def configure(parser: CommandParser) -> None:
    add_request_flags(parser)
    parser.add_argument("--run-id", metavar="ID", help=RUN_ID_HELP)
    add_queue_arguments(parser)


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.queue import enqueue_all

    confirm_own_files(home, out)
    created = enqueue_all(home, build_wanted_runs(args, home))
    out.print_warnings(home.warnings)
    return print_queued(home, created, args, out)


def print_queued(
    home: Home, created: Sequence[CreatedRun], args: Namespace, out: Output, *, has_service: bool | None = None
) -> int:
    """Print the state of the runs that were queued, and return the exit code."""
    has_service = home.has_service() if has_service is None else has_service
    waits = explain_waits(home, [one.run.id for one in created])
    # Also when the command is repeated: what it asks for will not happen.
    is_cancelled = any(run.status.state is RunState.CANCELLED and not run.status.attempt for run, _ in created)
    code = EXIT_CANCELLED if args.after and is_cancelled else 0
    if out.json:
        out.print_json_lines(
            {**queued_to_json(home, one, waits.get(one.run.id, "")), "service": has_service} for one in created
        )
        return code
    if args.each is None:
        _print_one(created[0], waits, args, out)
    else:
        _print_many(created, waits, out)
    if queued := [one.run.id for one in created if one.run.status.state is RunState.QUEUED]:
        queue = out.format_command("list", "--queue")
        starts = "a running service starts" if has_service else "no service is running here: nothing starts"
        until = "" if has_service else f" until {out.format_command('serve')}"
        if held := [run_id for run_id in queued if waits.get(run_id) == HELD]:  # perhaps since an earlier command
            release = out.format_command("hold", "--release", held[0] if args.each is None else "RUN")
            both = f"{until or ' after'}{' and' if until else ''} {release}"
            until = both if len(held) == len(queued) else f"{until}, and held ones after {release}"
        out.print_line(f"  {starts} {'it' if args.each is None else 'them'}{until}; the queue: {queue}")
    if args.each is None and code == 0:
        print_steps(created[0].run, out)
    return code


def _print_one(created: CreatedRun, waits: dict[str, str], args: Namespace, out: Output) -> None:
    run, why = created.run, waits.get(created.run.id, "")
    state = f"{run.status.state}{f', {why}' if why else ''}"
    known = "" if created.is_new else " already"
    key = f" with the key {args.dedupe}" if args.dedupe and not created.is_new else ""
    out.print_line(f"run {run.id} (#{run.number}){key} is{known} {make_printable(state)}")
    if run.status.detail:
        out.print_line(f"  {make_printable(run.status.detail)}")
    if not created.is_new:
        out.print_line("  no other run was created")


def _print_many(created: Sequence[CreatedRun], waits: dict[str, str], out: Output) -> None:
    table = []
    for run, _ in created:
        why = waits.get(run.id, "")
        state = f"{run.status.state}: {why}" if why else str(run.status.state)
        table.append([run.id, f"#{run.number}", state, " ".join(run.spec.prompt.split())])
    out.print_table(_COLUMNS, table, titled=False)
    new = sum(one.is_new for one in created)
    known = f"; {len(created) - new} existed" if new < len(created) else ""
    out.print_note(f"{pluralize(new, 'run')} created{known}")


def print_steps(run: Run, out: Output, log: str = "") -> None:
    """Print how to follow the run, and where its output is."""
    out.print_line(f"  follow: {out.format_command('logs', '-f', run.id)}")
    if log:
        out.print_line(f"  its output: {make_printable(log)}")


def queued_to_json(home: Home, created: CreatedRun, why: str) -> dict[str, Any]:
    """Convert a queued run; `why` is what it waits for."""
    return {**run_to_json(home, created.run), "new": created.is_new, "waits": why}
