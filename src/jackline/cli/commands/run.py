"""`jackline run`: starts a run and follows it; with --dry-run it prints the plan and starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import QUIET_HELP, RUN_ID_HELP
from jackline.cli.queue_args import add_queue_arguments, refuse_queue_arguments
from jackline.cli.run_args import add_request_flags, build_request
from jackline.domain.states import TERMINAL
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.dry_run import PlannedRun
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

WORKS_ON_RUNS = True  # notices are delivered when it is done
INSIDE_RUN = ("--dry-run",)


def configure(parser: CommandParser) -> None:
    add_request_flags(parser)
    parser.add_argument("--run-id", metavar="ID", help=RUN_ID_HELP)
    add_queue_arguments(parser)
    parser.add_argument(
        "--detach", action="store_true", help="leave the run to a running service, or work on it in the background"
    )
    parser.add_argument(
        "--tmux",
        metavar="NAME",
        nargs="?",
        const="",
        help="work in a new tmux session, and show it at a terminal (default name: jackline- and the end of the id)",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command, files and prompt; start nothing")
    parser.add_argument("--quiet", action="store_true", help=QUIET_HELP)
    parser.add_setting("on_ask")
    parser.add_setting("env_file", "FILE")


def execute(args: Namespace, home: Home, out: Output) -> int:
    out.quiet = args.quiet
    if not args.dry_run:
        confirm_own_files(home, out)
    if args.detach and args.tmux is None and not args.dry_run:
        from jackline.cli.detach import detach_run

        return detach_run(args, home, out)
    refuse_queue_arguments(args, detached=args.detach)
    if args.tmux is not None and not args.dry_run:
        from jackline.cli.tmux_run import run_in_tmux

        return run_in_tmux(args, home, out)
    request = build_request(args, home)
    out.print_warnings(home.warnings)
    if args.dry_run:
        code = _print_plan(request, home, out)
        out.print_warnings(home.warnings)
        return code
    with (
        Interrupts() as interrupts,
        home.update_in_background(),
    ):  # before the first change: the agent never waits for it
        run = home.start(request, at_once=True)
        out.print_warnings(home.warnings)  # the run is stored, and has not started
        if run.status.state in TERMINAL:  # only with --run-id: the run has ended before, and does not run again
            return status_text.print_outcome(home, run, out, follow_run.run_exit_code(run))
        return follow_run.follow_run(home, run, out, interrupts, args.on_ask)


def _print_plan(request: Request, home: Home, out: Output) -> int:
    """Print what would be started; the exit code is the one that a run would start with."""
    import shlex
    from dataclasses import asdict

    from jackline.app.dry_run import plan_run
    from jackline.errors import AgentUnavailable

    planned = plan_run(request, home)
    command = shlex.join(planned.argv)
    code = AgentUnavailable.exit_code if planned.stuck else 0
    if out.json:
        out.print_json({"dry_run": True, "command": command, **asdict(planned), "exit_code": code})
    else:
        _print_plan_text(planned, command, out)
    if planned.problem:
        out.print_note(f"jackline: {AgentUnavailable(planned.agent, why=planned.problem)}")
    return code


def _describe_loop(planned: PlannedRun) -> dict[str, str]:
    """The plan, reviews, worktree and pull request of a run that has them."""
    facts = {"plan": "yes" if planned.plan else "", "setup": planned.setup, "copy": ", ".join(planned.copy)}
    if planned.reviewers:
        facts["review"] = f"{', '.join(planned.reviewers)} ({planned.review_mode} must pass)"
    if planned.branch:
        facts["worktree"] = f"branch {planned.branch} from {planned.base[:12]}"
    if planned.pr:
        onto = planned.pr_base or "the default branch"
        until = f", until {planned.until}" if planned.until else ""
        facts["pull request"] = f"{planned.pr}, from {planned.pr_branch} to {onto}{until}"
    return {name: text for name, text in facts.items() if text}


def _print_plan_text(planned: PlannedRun, command: str, out: Output) -> None:
    from jackline.app.setting_keys import format_setting

    facts = {
        "agent": ", then ".join((planned.agent, *planned.fallback)),
        "task": planned.task,
        "workspace": planned.workspace,
        "command": command,
        "stdin": "yes" if planned.stdin else "no",
        "environment": " ".join(planned.environment),
        "model": planned.model or "the agent's own",
        "effort": planned.effort or "the agent's own",
        "proof": planned.proof or "none",
        **_describe_loop(planned),
        "limits": ", ".join(f"{name} {format_setting(value)}" for name, value in planned.limits.items()),
    }
    for name, text in facts.items():
        out.print_line(f"{name:<12} {make_printable(text)}")
    for path in planned.files:
        out.print_line(f"{'file':<12} {make_printable(path)}")
    out.print_line("\nprompt")
    for line in planned.prompt.splitlines():
        out.print_line(f"  {make_printable(line)}".rstrip())
