"""`jackline completion`: a script for bash, zsh or fish, made from the parsers of all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import grammar, shells

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

NEEDS_PROJECT = False


def configure(parser: Parser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=tuple(shells.WRITERS), help="bash, zsh or fish")


def execute(args: Namespace, _home: Home, out: Output) -> int:
    script = shells.WRITERS[args.shell](grammar.everything(out))
    if out.json:
        out.json_line({"shell": args.shell, "script": script})
    else:
        out.out.write(script)
    return 0
