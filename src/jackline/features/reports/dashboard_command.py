"""`jackline dashboard`: write dashboard.md now. It must not import the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.run_json import to_json_values
from jackline.features.reports import dashboard
from jackline.features.reports.dashboard_page import render_dashboard

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("--print", dest="shown", action="store_true", help="print the dashboard instead of its path")


def execute(args: Namespace, home: Home, out: Output) -> int:
    reads = out.json or args.shown
    path, board = dashboard.show_dashboard(home) if reads else dashboard.write_dashboard(home)
    if out.json:
        out.print_json({"path": path, **to_json_values(board)})
    elif args.shown:
        out.print_line(render_dashboard(board).rstrip("\n"))
    else:
        out.print_line(path)
    return 0
