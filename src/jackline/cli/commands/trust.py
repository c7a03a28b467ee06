"""`jackline trust`: shows a person at a terminal what this project's files may do, and allows it until they change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import trust
from jackline.app.environment import make_redactor
from jackline.app.own_files import find_unconfirmed, revoke_trust, trust_project
from jackline.clock import wall_ms
from jackline.errors import Refused
from jackline.formatting import format_iso, format_local, make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from jackline.app.home import Home
    from jackline.app.trust import TrustStatus
    from jackline.app.trust_review import TrustedFile
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

# Do not load the project file, which may be rejected until it is trusted.
NEEDS_PROJECT = False
INSIDE_RUN = ("--show",)
_DECLINED = 1


def configure(parser: CommandParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="only print the trust status, and what trust would allow")
    action.add_argument("--revoke", action="store_true", help="revoke trust")
    parser.epilog = "It asks for confirmation, so it needs a terminal. It is refused inside a run."


def execute(args: Namespace, home: Home, out: Output) -> int:
    folder = os.getcwd()
    if args.revoke:
        revoke_trust(home, folder)
    elif not args.show and not _ask_for_trust(home, folder, out):
        out.print_line("not trusted: nothing was changed")
        return _DECLINED
    status = trust.read_trust_status(home.path, home.config.get_text("database"), folder)
    if out.json:
        out.print_json(_build_record(status))
        return 0
    out.print_line(f"{status.folder} is {_describe_status(status)}")
    if args.show:
        _print_files(_review(status), out)
        if change := find_unconfirmed(home):
            out.print_line(f"not confirmed: {make_printable(str(change))}")
    return 0


def _ask_for_trust(home: Home, folder: str, out: Output) -> bool:
    """Show what the files may do, and ask; return whether they are trusted now."""
    from jackline.cli.answer_input import has_terminal
    from jackline.cli.own_files_prompt import ask_about_change
    from jackline.cli.prompts import ask_confirmation

    if not (out.stdout.is_terminal and has_terminal(out)):
        raise Refused("`jackline trust` asks a person: type it at a terminal, without --json; --show only shows")
    change = find_unconfirmed(home)
    if change is not None and not ask_about_change(home, change, out):
        return False
    status = trust.read_trust_status(home.path, home.config.get_text("database"), folder)
    if change is not None and (not status.files or (status.trusted and not status.settings)):
        return True
    digest = trust.hash_project(folder)
    out.print_line(f"{status.folder}: if you trust it, its files may do this until one of them changes:")
    _print_files(_review(status), out)
    if not ask_confirmation("Trust these files?", out, default=False):
        return False
    home.create()
    trust_project(home, folder, digest)
    return True


def _review(status: TrustStatus) -> list[TrustedFile]:
    from jackline.app.trust_review import review_files

    return review_files(status.folder, os.getcwd())


def _build_record(status: TrustStatus) -> dict[str, object]:
    clean = make_redactor().redact
    allows = {file.path: [clean(text) for text in file.allows] for file in _review(status)}
    return {**stored_dict(status), "at": format_iso(status.at), "allows": allows}


def _print_files(files: Iterable[TrustedFile], out: Output) -> None:
    """Print each file and what it may do; both come from the project."""
    clean = make_redactor().redact
    for file in files:
        out.print_line(f"  {make_printable(file.path)}")
        for text in file.allows:
            out.print_line(f"    {make_printable(clean(text))}")


def _describe_status(status: TrustStatus) -> str:
    if status.trusted and status.settings:
        names = ", ".join(map(make_printable, status.settings))
        return f"trusted, but not its settings for agents ({names}); review them, then run `jackline trust`"
    if status.trusted:
        return f"trusted since {format_local(status.at, wall_ms())}, until one of its files changes"
    if status.changed:
        return "no longer trusted, because its files have changed; review them, then run `jackline trust`"
    if not status.files:
        return "not trusted, and has no files that need trust"
    return "not trusted: its files may only choose agents and models, lower limits and tighten the policy"
