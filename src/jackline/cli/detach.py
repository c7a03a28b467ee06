"""`jackline run --detach`: leaves a run to a running service, or to a new supervisor in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.commands.enqueue import print_queued, print_steps, queued_to_json
from jackline.cli.queue_args import build_wanted_runs, refuse_service_arguments
from jackline.cli.queue_text import has_wait
from jackline.domain.states import RunState
from jackline.errors import UsageError

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.run_creation import CreatedRun
    from jackline.cli.output import Output


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
    has_service = home.has_service()  # again: one that has ended meanwhile did not see the run
    if has_service or args.each is not None or not _needs_process(home, created[0], args):
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
        out.print_json({**queued_to_json(home, created._replace(run=run), ""), **found})
        return code
    if start.problem:
        again = out.format_command("resume", run.id)
        return out.print_error(f"run {run.id} stays queued: {start.problem}; try again: {again}", code)
    where = f"started in the background (pid {start.pid}); no service is running here"
    out.print_line(f"run {run.id} (#{run.number}) {where}")
    print_steps(run, out, log=start.log)
    return code
