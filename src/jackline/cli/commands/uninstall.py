"""`jackline uninstall`: what would go; with --yes it goes. Projects and servers keep what is theirs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import removal
from jackline.cli.output import columns

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.removal import Thing
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

_COLUMNS = columns("SIZE> WHAT PATH")
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1000

NEEDS_PROJECT = False  # also where its file is the one that is wrong


def configure(parser: Parser) -> None:
    parser.add_argument("--yes", action="store_true", help="really remove it, for ever")


def execute(args: Namespace, home: Home, out: Output) -> int:
    if args.yes:
        removal.refuse_while_running(home)
    found = removal.things(home, os.environ)
    left = removal.remove(home, found, os.environ) if args.yes else []
    if out.json:
        things = [{"path": thing.path, "what": thing.what, "size": thing.size} for thing in found]
        out.json_line({"removed": args.yes, "things": things, "left": left})
        return 0
    _tell(found, home, out, removed=args.yes)
    for path in left:
        out.note(f"left, because it is not jackline's: {path}")
    return 0


def _tell(found: list[Thing], home: Home, out: Output, *, removed: bool) -> None:
    if found:
        out.table(_COLUMNS, [[_amount(thing.size), thing.what, thing.path] for thing in found])
    out.note(_summary(found, removed=removed))
    if "://" in home.database:
        out.note("the data in PostgreSQL is not touched: drop it there if nobody needs it")
    out.note(
        "not touched: jackline.toml and .agents/ in your projects, and the program itself (pip uninstall jackline)"
    )


def _summary(found: list[Thing], *, removed: bool) -> str:
    if not found:
        return "there is nothing to remove"
    total = _amount(sum(thing.size for thing in found))
    return f"removed: {total}" if removed else f"this would go: {total}; `jackline uninstall --yes` removes it for ever"


def _amount(size: float) -> str:
    for unit in _UNITS:
        if size < _THOUSAND or unit == _UNITS[-1]:
            break
        size /= _THOUSAND
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
