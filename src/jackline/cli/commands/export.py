"""`jackline export`: writes the files of a run's folder again, from the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import RUN_HELP
from jackline.errors import Refused

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if home.is_archived(run):
        raise Refused(f"the events of run {run.id} are archived: its files cannot be written again, and stay unchanged")
    folder = home.export(run)
    if out.json:
        out.print_json({"id": run.id, "folder": folder})
    else:
        out.print_line(folder)
    return 0
