"""`jackline uninstall`: lists the files of jackline on this machine, or removes them. Projects are not touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import uninstall
from jackline.cli.output import parse_columns

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_COLUMNS = parse_columns("SIZE> WHAT PATH")
_THOUSAND = 1000

NEEDS_PROJECT = False  # it must work even where the project's file is broken
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove it permanently")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.yes:
        uninstall.refuse_while_running(home)
    found = uninstall.find_leftovers(home, os.environ)
    left = uninstall.remove_leftovers(home, found, os.environ) if args.yes else []
    if out.json:
        things = [{"path": one.path, "what": one.what, "size": one.size} for one in found]
        out.print_json({"removed": args.yes, "things": things, "left": left})
        return 0
    if found:
        out.print_table(_COLUMNS, [[_format_size(one.size), one.what, one.path] for one in found])
    total = _format_size(sum(one.size for one in found))
    if not found:
        out.print_note("there is nothing to remove")
    elif args.yes:
        out.print_note(f"removed {total}")
    else:
        out.print_note(f"{total} would be removed; `jackline uninstall --yes` removes it permanently")
    if home.has_database_server:
        out.print_note("the data in PostgreSQL is not touched: drop it there if you no longer need it")
    out.print_note(
        "not touched: jackline.toml and .agents/ in your projects, and jackline itself (pip uninstall jackline)"
    )
    for path in left:
        out.print_note(f"kept, because it is not jackline's: {path}")
    return 0


def _format_size(size: float) -> str:
    if size < _THOUSAND:
        return f"{size} B"
    for unit in ("kB", "MB", "GB"):
        size /= _THOUSAND
        if size < _THOUSAND:
            return f"{size:.1f} {unit}"
    return f"{size / _THOUSAND:.1f} TB"
