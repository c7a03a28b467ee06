"""`jackline init`: sets up a project; existing files stay as they are."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from jackline.app import init, trust
from jackline.cli import prompts
from jackline.errors import UsageError
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

NEEDS_PROJECT = False  # it must work even where the project's file is broken
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument(
        "--skills",
        action=argparse.BooleanOptionalAction,
        help="write the skills for the project's agents; without this flag ask at a terminal, else write none",
    )
    parser.add_argument(
        "--agents-md", dest="pointer", action="store_true", help="write the skills, and link to them in AGENTS.md"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    folder = os.getcwd()
    was_trusted = trust.is_trusted(home.path, home.config.get_text("database"), folder)
    steps = init.prepare_project(folder, skills=_wants_skills(args, folder, out), pointer=args.pointer)
    trust_ended = was_trusted and not trust.is_trusted(home.path, home.config.get_text("database"), folder)
    if out.json:
        out.print_json({"steps": [stored_dict(step) for step in steps], "trust_ended": trust_ended})
        return 0
    if not init.has_all_skills(folder):
        out.print_note("no skills written; `jackline init --skills` writes them")
    for step in steps:
        out.print_line(f"{'wrote' if step.wrote else 'left '} {step.path}: {step.what}")
    if trust_ended:
        out.print_line("the files of this trusted project have changed: read them, then run `jackline trust`")
    return 0


def _wants_skills(args: Namespace, folder: str, out: Output) -> bool:
    """Return whether to write the skills, which instruct every agent in this project; ask if no flag says so."""
    if args.pointer and args.skills is False:
        raise UsageError("--agents-md links to the skills; leave out --no-skills")
    if args.pointer or args.skills is not None:
        return args.pointer or bool(args.skills)
    has_terminal = sys.stdin is not None and sys.stdin.isatty() and out.stderr.is_terminal and not out.json
    if not has_terminal or init.has_all_skills(folder):
        return False
    names = ", ".join(init.SKILL_NAMES)
    return prompts.ask_confirmation(f"Write skills ({names}) for this project's agents into .agents/skills?", out)
