"""`jackline init`: prepare a project; what is there stays as it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import preparing, trust
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

NEEDS_PROJECT = False  # also where its file is the one that is wrong


def configure(parser: Parser) -> None:
    pointer = "add a pointer to the skills to AGENTS.md, once"
    parser.add_argument("--agents-md", dest="pointer", action="store_true", help=pointer)


def execute(args: Namespace, home: Home, out: Output) -> int:
    folder = os.getcwd()
    trusted = trust.is_trusted(home.path, folder)
    steps = preparing.prepare(folder, pointer=args.pointer)
    ended = trusted and not trust.is_trusted(home.path, folder)
    if out.json:
        out.json_line({"steps": [stored_dict(step) for step in steps], "trust_ended": ended})
        return 0
    for step in steps:
        out.line(f"{'wrote' if step.wrote else 'left '} {step.path}: {step.what}")
    if ended:
        out.line("this project was trusted, and its files are others now: read them, then `jackline trust`")
    return 0
