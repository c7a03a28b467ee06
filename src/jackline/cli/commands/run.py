"""`jackline run`: start a run and stay with it. What is asked comes from words, files and stdin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import carry, report
from jackline.cli.asking import request_of
from jackline.cli.interrupt import Interrupts
from jackline.domain.states import TERMINAL
from jackline.domain.task import MODES

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

_SETTINGS = (
    "timeout_seconds", "idle_seconds", "grace_seconds", "retries", "retry_seconds", "max_usd", "max_tokens",
    "max_calls", "max_steps", "max_seconds", "max_iterations", "approval_timeout", "approval_answer",
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
    parser.add_argument(
        "--allow", metavar="NAMES", action="append", default=[], help="agree beforehand to what these rules ask about"
    )
    parser.add_argument(
        "--strict", action="store_const", const="true", help="after a crash, unknown calls are in doubt like effects"
    )
    parser.add_argument("--mode", choices=MODES, help="job: go on without asking where that is safe (default: job)")
    parser.add_argument(
        "--ungated", action="store_true", help="go on when an agent that asks nobody does what a rule would hold back"
    )
    parser.add_argument("--run-id", metavar="ID", help="choose the id, idempotently")
    parser.add_argument("--dry-run", action="store_true", help="print what would be started, and start nothing")
    for name in _SETTINGS:
        parser.add_setting(name)
    parser.takes_arguments = True
    parser.epilog = "Words after -- go to the agent as they are."


def execute(args: Namespace, home: Home, out: Output) -> int:
    request = request_of(args, home)
    _tell(home, out)
    if args.dry_run:
        from jackline.cli import dry_run

        code = dry_run.show(request, home, out)
        _tell(home, out)
        return code
    with (
        Interrupts() as interrupts,
        home.update_in_background(),
    ):  # from the first change on: the agent does not wait for it
        run = home.start(request)
        _tell(home, out)  # written down, and not begun
        if run.life.state in TERMINAL:  # only with --run-id: it was done before, and is not done again
            return report.tell(home, run, out, carry.code_of(run))
        return carry.carry_on(home, run, out, interrupts)


def _tell(home: Home, out: Output) -> None:
    while home.warnings:
        out.note(f"jackline: {home.warnings.pop(0)}")
