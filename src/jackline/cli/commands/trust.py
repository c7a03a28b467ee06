"""`jackline trust`: allows the files of this project to choose programs, until they change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import trust
from jackline.app.identity import refuse_inside_run
from jackline.clock import wall_ms
from jackline.formatting import format_iso, format_local, make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.trust import TrustStatus
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

# Do not load the project file, which may be rejected until it is trusted.
NEEDS_PROJECT = False


def configure(parser: CommandParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="only print the trust status")
    action.add_argument("--revoke", action="store_true", help="revoke trust")


def execute(args: Namespace, home: Home, out: Output) -> int:
    folder = os.getcwd()
    if not args.show:
        refuse_inside_run("trust")
    if args.revoke:
        trust.revoke_trust(home.path, folder)
    elif not args.show:
        home.create()
        trust.trust_project(home.path, folder)
    status = trust.read_trust_status(home.path, folder)
    if out.json:
        out.print_json({**stored_dict(status), "at": format_iso(status.at)})
        return 0
    out.print_line(f"{status.folder} is {_describe_status(status)}")
    for name in status.files:
        out.print_line(f"  {make_printable(name)}")
    return 0


def _describe_status(status: TrustStatus) -> str:
    if status.trusted:
        return f"trusted since {format_local(status.at, wall_ms())}, until one of these files changes:"
    if status.changed:
        return "no longer trusted, because its files have changed; review them, then run `jackline trust`:"
    if not status.files:
        return "not trusted, and has no files that need trust"
    return "not trusted: these files may only choose agents and models, lower limits and tighten the policy:"
