"""`jackline hold`: keeps queued runs from being started, or releases them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import RUN_HELP
from jackline.cli.run_json import run_to_json

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="+", help=RUN_HELP)
    parser.add_argument("--release", action="store_true", help="let the runs start again")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.queue import set_held

    for run in set_held(home, [home.find(text) for text in args.run], held=not args.release):
        if out.json:
            out.print_json({**run_to_json(home, run), "held": not args.release})
        elif args.release:
            out.print_line(f"run {run.id} (#{run.number}) is released")
        else:
            release = out.format_command("hold", "--release", run.id)
            out.print_line(f"run {run.id} (#{run.number}) is held; release it: {release}")
    return 0
