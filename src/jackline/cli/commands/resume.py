"""`jackline resume`: continues a run that is queued, waiting, failed, or lost its supervisor.

It first stores what a person changes: a message to the agent, higher limits, another model.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.cli import follow_run, prompts, status_text
from jackline.cli.answer_input import has_terminal
from jackline.cli.follow_run import Interrupts
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import QUIET_HELP, RUN_HELP, SHARE_HELP
from jackline.cli.resume_args import add_amendment_arguments, build_amendment, has_amendment
from jackline.cli.run_choice import find_resumable_run
from jackline.clock import wall_ms
from jackline.domain.amendment import suggest_totals
from jackline.domain.ids import repository_id
from jackline.domain.states import EXIT_INTERRUPTED, EXIT_PERSON, RunState, WaitReason, format_run_state
from jackline.domain.task import INTERACTIVE
from jackline.errors import JacklineError, Refused, StoreError, UsageError
from jackline.formatting import format_line, format_local, pluralize
from jackline.store.models import RunQuery
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run
    from jackline.store.models import RunSummary

WORKS_ON_RUNS = True  # notices are delivered when it is done
INSIDE_RUN = ()
_MOST_LOST = 10_000
_PROMPT_CHARS = 60


def configure(parser: CommandParser) -> None:
    parser.takes_flags_between = True
    newest = f"{RUN_HELP} (default: the newest run of this repository that can be resumed)"
    parser.add_argument("run", metavar="RUN", nargs="?", help=newest)
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="a message to the agent, in its next prompt; - reads it from stdin"
    )
    add_amendment_arguments(parser)
    parser.add_argument("--yes", action="store_true", help="continue a run of --mode interactive without asking")
    parser.add_argument("--share-workspace", action="store_true", help=SHARE_HELP)
    parser.add_argument("--lost", action="store_true", help="continue all lost runs of this repository, oldest first")
    parser.add_argument("--all-repos", action="store_true", help="with --lost: those of every repository")
    parser.add_argument("--quiet", action="store_true", help=QUIET_HELP)
    parser.add_setting("on_ask")
    parser.add_setting("env_file", "FILE")


def execute(args: Namespace, home: Home, out: Output) -> int:
    home.share_workspace = args.share_workspace
    out.quiet = args.quiet
    confirm_own_files(home, out)
    if args.lost or args.all_repos:
        return _resume_lost(args, home, out)
    run = find_resumable_run(home, args.run, out)
    if run.spec.imported:
        raise Refused(f"run {run.id} was imported from {run.spec.imported} and is read-only: start another run")
    _refuse_removed_worktree(home, run)
    amendment = build_amendment(args, home, run)
    if not amendment.is_empty:
        run = home.amend(run, amendment)
    match run.status.state:
        case RunState.CANCELLED:
            raise Refused(
                f"run {run.id} was cancelled and cannot be resumed: `jackline fork {run.id}` starts a new one"
            )
        case RunState.SUCCEEDED:
            # A supervisor killed after its last write may have left the files unwritten.
            if not home.is_archived(run):
                home.export(run)
            return status_text.print_outcome(home, run, out, follow_run.run_exit_code(run))
        case _ if _has_spent_budget(run):
            return status_text.print_outcome(home, run, out, follow_run.run_exit_code(run))
        case _ if not (args.yes or _is_confirmed(run, home, out)):
            return status_text.print_outcome(home, run, out, EXIT_PERSON)
        case _:
            _refuse_missing_folder(run, out)
            home.refuse_broken_project()  # before the note that it tries
            _note_limit(home, run, out)
            with Interrupts() as interrupts:
                return follow_run.follow_run(home, run, out, interrupts, args.on_ask)


def _refuse_removed_worktree(home: Home, run: Run) -> None:
    """The attempt could only fail, and hide why the run had failed."""
    if run.status.state is RunState.FAILED and run.spec.worktree.name:
        row = home.store().worktrees.get(run.id)
        if row is None or row.removed_at is not None:
            name = run.spec.worktree.name
            raise Refused(f"worktree {name} of run {run.id} was removed after its work was merged: start another run")


def _refuse_missing_folder(run: Run, out: Output) -> None:
    """The attempt could only fail, and cancel the runs that depend on it; a lost run has processes to end."""
    if run.spec.worktree.name:  # its worktree is made, or made again
        return
    if run.status.state is not RunState.RUNNING and not os.path.isdir(run.spec.workspace):
        cancel = out.format_command("cancel", run.id)
        raise Refused(f"the folder of run {run.id}, {run.spec.workspace}, does not exist: create it again, or {cancel}")


def _note_limit(home: Home, run: Run, out: Output) -> None:
    """Print that the agent is known to rest: the run is tried anyway, because a person wants it now."""
    now = wall_ms()
    reset = home.store().wakeups.find_reset(run)
    if reset > now:
        out.print_note(f"{run.agent} has a limit that resets at {format_local(reset, now)}; trying it now")


def _resume_lost(args: Namespace, home: Home, out: Output) -> int:
    """Continue the lost runs, oldest first; return the exit code of the first that did not succeed, else 0.

    A run that fails, waits or cannot be continued does not stop the next one; a signal stops them all.
    """
    from jackline.app.lost_runs import list_lost

    if args.run is not None or not args.lost or has_amendment(args):
        raise UsageError("--lost takes no run, message or change; --all-repos: the lost runs of every repository")
    repository = None if args.all_repos else repository_id(find_repository(os.getcwd()))
    lost = list_lost(home, RunQuery(repository=repository, limit=_MOST_LOST))[::-1]
    if not lost:
        where = "" if args.all_repos else " in this repository; --all-repos looks in every one"
        out.print_note(f"no lost runs{where}")
        return 0
    codes: list[int] = []
    with Interrupts() as interrupts:
        for row in lost:
            if interrupts.is_interrupted:
                codes.append(EXIT_INTERRUPTED)
                break
            codes.append(_resume_lost_run(args, home, row, out, interrupts))
    if len(lost) > 1:
        failed = sum(code != 0 for code in codes)
        out.print_note(f"{pluralize(len(lost), 'lost run')}, {len(codes) - failed} succeeded")
    return next((code for code in codes if code), 0)


def _resume_lost_run(args: Namespace, home: Home, row: RunSummary, out: Output, interrupts: Interrupts) -> int:
    try:
        run = home.find(row.id)
        if not home.explain_loss(run):
            out.print_note(f"run {run.id} was taken up by another process in the meantime")
            return 0
        out.print_note(f"resuming lost run #{run.number} ({run.id}): {format_line(run.spec.prompt, _PROMPT_CHARS)}")
        if not (args.yes or _is_confirmed(run, home, out)):
            return EXIT_PERSON
        return follow_run.follow_run(home, run, out, interrupts, args.on_ask)
    except StoreError:  # it would stop the next one, too
        raise
    except JacklineError as error:
        return out.print_error(str(error), error.exit_code)


def _has_spent_budget(run: Run) -> bool:
    """Whether the run would only find its budget spent again: the outcome names the command that raises it."""
    waits = run.status.state is RunState.WAITING and run.status.reason is WaitReason.BUDGET
    return waits and bool(suggest_totals(run.spec.limits, run.status.spent))


def _is_confirmed(run: Run, home: Home, out: Output) -> bool:
    """Return whether the run may continue: in interactive mode a person at the terminal is asked first."""
    if run.spec.mode != INTERACTIVE or not has_terminal(out):
        return True
    forced = home.store().calls.list_forced(run.id)
    repeated = f" {pluralize(len(forced), 'call')} will be repeated first." if forced else ""
    return prompts.ask_confirmation(f"run {run.id} {format_run_state(run.status.state)}.{repeated} Continue?", out)
