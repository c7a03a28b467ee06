"""`jackline dashboard`: write dashboard.md now. It must not import the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import dashboard
from jackline.cli.record import values
from jackline.domain.dashboard import to_markdown

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser


def configure(parser: Parser) -> None:
    parser.add_argument("--print", dest="shown", action="store_true", help="print the dashboard instead of its path")


def execute(args: Namespace, home: Home, out: Output) -> int:
    reads = out.json or args.shown
    path, board = dashboard.show_dashboard(home) if reads else dashboard.write_dashboard(home)
    if out.json:
        out.json_line({"path": path, **values(board)})
    elif args.shown:
        out.line(to_markdown(board).rstrip("\n"))
    else:
        out.line(path)
    return 0
