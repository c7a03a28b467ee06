"""`jackline run`: start a run and stay with it. What is asked comes from words, files and stdin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.asking import request_of
from jackline.cli.interrupt import Interrupts
from jackline.domain.states import TERMINAL

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

_SETTINGS = (
    "timeout_seconds", "idle_seconds", "grace_seconds", "retries", "retry_seconds", "max_usd", "max_tokens",
    "max_calls", "max_steps", "max_seconds", "max_iterations",
)  # fmt: skip


def configure(parser: Parser) -> None:
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="what the agent shall do; -: read it from stdin")
    parser.add_setting("agent", "NAME")
    parser.add_setting("fallback", "NAMES")
    parser.add_argument("--model", metavar="NAME", help="the model of the agent (default: the agent's own)")
    parser.add_argument("--effort", metavar="WORD", help="how hard the model shall think, in the agent's own words")
    parser.add_argument("--session", metavar="ID", help="go on with a session of the agent that was begun by hand")
    parser.add_argument("--script", metavar="FILE", help="what the scripted agent plays")
    parser.add_argument("--workspace", metavar="DIR", help="where the agent works (default: here)")
    parser.add_argument("--task", metavar="NAME", help="a template: `jackline tasks list` shows them")
    parser.add_argument("--var", metavar="NAME=VALUE", action="append", default=[], help="fill a variable of the task")
    parser.add_argument("--job", metavar="FILE", help="TOML or JSON that says all of this; flags win over it")
    parser.add_argument("--proof", metavar="CMD", help="what must succeed on the final tree")
    parser.add_argument("--policy", metavar="FILE", help="TOML with [[rule]] tables: which calls are effects")
    parser.add_argument("--run-id", metavar="ID", help="choose the id, idempotently")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started, and start nothing")
    for name in _SETTINGS:
        parser.add_setting(name)
    parser.takes_arguments = True
    parser.epilog = "Words after -- go to the agent as they are."


def execute(args: Namespace, home: Home, out: Output) -> int:
    request = request_of(args, home)
    while home.warnings:  # before anything is started
        out.note(f"jackline: {home.warnings.pop(0)}")
    if args.dry_run:
        from jackline.cli import dry_run

        return dry_run.show(request, home, out)
    with Interrupts() as interrupts:
        run = home.start(request)
        if run.life.state in TERMINAL:  # only with --run-id: it was done before, and is not done again
            return report.tell(home, run, out, carry.code_of(run))
        return carry.carry_on(home, run, out, interrupts)
