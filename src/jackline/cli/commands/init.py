"""`jackline init`: prepare a project; what is there stays as it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import scaffold

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

NEEDS_PROJECT = False  # also where its file is the one that is wrong


def configure(_parser: Parser) -> None:
    pass


def execute(_args: Namespace, _home: Home, out: Output) -> int:
    steps = scaffold.prepare(os.getcwd())
    if out.json:
        out.json_line({"steps": [step._asdict() for step in steps]})
        return 0
    for step in steps:
        out.line(f"{'wrote' if step.wrote else 'left '} {step.path}: {step.what}")
    return 0
