"""`jackline run --detach`: leaves a run to a running service, or to a supervisor of its own in the background.

Also the report of runs that were put into the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.cli.output import parse_columns
from jackline.cli.queue_args import build_wanted_runs, refuse_service_arguments
from jackline.cli.queue_text import explain_waits, has_wait
from jackline.cli.run_json import run_to_json
from jackline.domain.states import EXIT_CANCELLED, RunState
from jackline.errors import UsageError
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.app.run_creation import CreatedRun
    from jackline.cli.output import Output
    from jackline.domain.records import Run

_COLUMNS = parse_columns("RUN #> STATE* PROMPT~")


def detach_run(args: Namespace, home: Home, out: Output) -> int:
    """Create the run and return once it is in good hands: those of a service, or of a process in the background."""
    from jackline.app.queue import enqueue_all

    if args.on_ask is not None:
        raise UsageError("--on-ask is for a run in the foreground: leave it out, or leave out --detach")
    has_service = home.has_service()
    if has_service and args.env_file is not None:
        raise UsageError(
            "--env-file does not reach a run that a running service starts: name the file as `env_file` in your "
            "config.toml, or leave out --detach"
        )
    if not has_service:
        refuse_service_arguments(args)
    created = enqueue_all(home, build_wanted_runs(args, home), at_once=not has_service)
    out.print_warnings(home.warnings)
    if has_service or not _needs_process(home, created[0], args):
        return print_queued(home, created, args, out, has_service=has_service)
    return _start_in_background(home, created[0], out)


def _needs_process(home: Home, created: CreatedRun, args: Namespace) -> bool:
    """Whether nothing but this command starts the run: a run that only has the same dedupe key is left alone."""
    run, is_new = created
    is_ours = is_new or run.id == args.run_id
    return is_ours and run.status.state is RunState.QUEUED and not has_wait(home, run.id)


def _start_in_background(home: Home, created: CreatedRun, out: Output) -> int:
    from jackline.app.background import resume_in_background
    from jackline.errors import JacklineError

    run = created.run
    start = resume_in_background(home, [run])
    run = home.store().runs.get(run.id) or run
    code = JacklineError.exit_code if start.problem else 0
    if out.json:
        found = {"service": False, "pid": start.pid, "log": start.log, "problem": start.problem or None}
        out.print_json({**_to_json(home, created._replace(run=run), ""), **found})
        return code
    if start.problem:
        again = out.format_command("resume", run.id)
        return out.print_error(f"run {run.id} stays queued: {start.problem}; try again: {again}", code)
    where = f"started in the background (pid {start.pid}); no service is running here"
    out.print_line(f"run {run.id} (#{run.number}) {where}")
    _print_steps(run, out, log=start.log)
    return code


def print_queued(
    home: Home, created: Sequence[CreatedRun], args: Namespace, out: Output, *, has_service: bool | None = None
) -> int:
    """Print what became of the runs that were put into the queue, and return the exit code."""
    has_service = home.has_service() if has_service is None else has_service
    waits = explain_waits(home, [one.run.id for one in created])
    code = EXIT_CANCELLED if any(one.run.status.state is RunState.CANCELLED and one.is_new for one in created) else 0
    if out.json:
        out.print_json_lines(
            {**_to_json(home, one, waits.get(one.run.id, "")), "service": has_service} for one in created
        )
        return code
    if args.each is None:
        _print_one(created[0], waits, args, out)
    else:
        _print_many(created, waits, out)
    if any(one.run.status.state is RunState.QUEUED for one in created):
        queue = out.format_command("list", "--queue")
        starts = "a running service starts" if has_service else "no service is running here: nothing starts"
        until = "" if has_service else f" until {out.format_command('serve')}"
        if args.hold and created[0].is_new:
            words = ("hold", "--release", created[0].run.id if args.each is None else "RUN")
            until = f"{until or ' after'}{' and' if until else ''} {out.format_command(*words)}"
        out.print_line(f"  {starts} {'it' if args.each is None else 'them'}{until}; the queue: {queue}")
    if args.each is None and code == 0:
        _print_steps(created[0].run, out)
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


def _print_steps(run: Run, out: Output, log: str = "") -> None:
    out.print_line(f"  follow: {out.format_command('logs', '-f', run.id)}")
    if log:
        out.print_line(f"  its output: {make_printable(log)}")


def _to_json(home: Home, created: CreatedRun, why: str) -> dict[str, Any]:
    return {**run_to_json(home, created.run), "new": created.is_new, "waits": why}
