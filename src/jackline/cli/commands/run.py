"""`jackline run`: starts a run and follows it; with --dry-run it prints the plan and starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import follow_run, status_text
from jackline.cli.follow_run import Interrupts
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.parser import QUIET_HELP, SHARE_HELP
from jackline.cli.run_args import build_request
from jackline.domain.states import TERMINAL
from jackline.domain.task import MODES
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.dry_run import PlannedRun
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_SETTINGS = (
    "timeout_seconds", "idle_seconds", "grace_seconds", "retries", "retry_seconds", "max_usd", "max_tokens",
    "max_calls", "max_steps", "max_seconds", "max_iterations", "approval_timeout", "approval_answer", "replay",
    "on_ask", "unmatched", "profile",
)  # fmt: skip
INSIDE_RUN = ("--dry-run",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="the task for the agent; - reads it from stdin")
    parser.add_setting("agent", "NAME")
    parser.add_setting("fallback", "NAMES")
    parser.add_argument("--model", metavar="NAME", help="the model to use (default: the agent's own)")
    parser.add_argument("--effort", metavar="WORD", help="the reasoning effort, in the agent's own words")
    parser.add_argument("--session", metavar="ID", help="continue a session of the agent that was started by hand")
    parser.add_argument("--script", metavar="FILE", help="the script of the scripted agent")
    parser.add_argument("--workspace", metavar="DIR", help="the agent's working directory (default: the current one)")
    parser.add_argument("--task", metavar="NAME", help="a run template; `jackline tasks list` shows them")
    parser.add_argument("--var", metavar="NAME=VALUE", action="append", default=[], help="set a variable of the task")
    parser.add_argument("--job", metavar="FILE", help="read these options from a TOML or JSON file; flags override it")
    parser.add_argument("--proof", metavar="CMD", help="a command that must succeed on the final tree")
    parser.add_argument("--policy", metavar="FILE", help="a TOML file with [[rule]] tables: which calls are effects")
    parser.add_argument(
        "--allow",
        metavar="TEXTS",
        action="append",
        default=[],
        help="approve calls in advance: RULE, RULE=PATTERN or RULE=any, separated by commas",
    )
    parser.add_argument(
        "--strict", action="store_const", const="true", help="after a crash, treat unknown calls in doubt like effects"
    )
    parser.add_argument(
        "--mode", choices=MODES, help="interactive: ask at the terminal before the run is resumed (default: job)"
    )
    parser.add_argument(
        "--ungated",
        action="store_true",
        help="keep running even if an agent without an enforced gate makes a call that policy would block",
    )
    parser.add_argument("--run-id", metavar="ID", help="choose the run's id; repeating the command does not repeat it")
    parser.add_argument("--share-workspace", action="store_true", help=SHARE_HELP)
    parser.add_argument("--dry-run", action="store_true", help="print the command, files and prompt; start nothing")
    parser.add_argument("--quiet", action="store_true", help=QUIET_HELP)
    for name in _SETTINGS:
        parser.add_setting(name)
    parser.takes_arguments = True
    parser.epilog = "Words after -- are passed to the agent unchanged."


def execute(args: Namespace, home: Home, out: Output) -> int:
    out.quiet = args.quiet
    if not args.dry_run:
        confirm_own_files(home, out)
    request = build_request(args, home)
    _print_warnings(home, out)
    if args.dry_run:
        code = _print_plan(request, home, out)
        _print_warnings(home, out)
        return code
    with (
        Interrupts() as interrupts,
        home.update_in_background(),
    ):  # before the first change: the agent never waits for it
        run = home.start(request, at_once=True)
        _print_warnings(home, out)  # the run is stored, and has not started
        if run.status.state in TERMINAL:  # only with --run-id: the run has ended before, and does not run again
            return status_text.print_outcome(home, run, out, follow_run.run_exit_code(run))
        return follow_run.follow_run(home, run, out, interrupts, args.on_ask)


def _print_warnings(home: Home, out: Output) -> None:
    while home.warnings:
        out.print_note(f"jackline: {home.warnings.pop(0)}")


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
        "limits": ", ".join(f"{name} {format_setting(value)}" for name, value in planned.limits.items()),
    }
    for name, text in facts.items():
        out.print_line(f"{name:<12} {make_printable(text)}")
    for path in planned.files:
        out.print_line(f"{'file':<12} {make_printable(path)}")
    out.print_line("\nprompt")
    for line in planned.prompt.splitlines():
        out.print_line(f"  {make_printable(line)}".rstrip())
