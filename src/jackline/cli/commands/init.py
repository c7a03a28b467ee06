"""`jackline init`: sets up a project; existing files stay as they are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import init, trust
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

NEEDS_PROJECT = False  # it must work even where the project's file is broken


def configure(parser: CommandParser) -> None:
    parser.add_argument(
        "--agents-md", dest="pointer", action="store_true", help="add a link to the skills to AGENTS.md"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    folder = os.getcwd()
    was_trusted = trust.is_trusted(home.path, folder)
    steps = init.prepare_project(folder, pointer=args.pointer)
    trust_ended = was_trusted and not trust.is_trusted(home.path, folder)
    if out.json:
        out.print_json({"steps": [stored_dict(step) for step in steps], "trust_ended": trust_ended})
        return 0
    for step in steps:
        out.print_line(f"{'wrote' if step.wrote else 'left '} {step.path}: {step.what}")
    if trust_ended:
        out.print_line("the files of this trusted project have changed: read them, then run `jackline trust`")
    return 0
