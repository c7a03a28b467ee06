"""`jackline sessions`: the sessions of the CLIs on this machine, newest first, for `run --session`."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from jackline.cli.parser import parse_count
from jackline.clock import wall_ms
from jackline.features.sessions.session_search import SessionSearch
from jackline.formatting import format_age, format_iso, format_line, make_printable, pluralize, shorten_text

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.sessions.session_search import FoundSession

INSIDE_RUN = ()
_PROMPT_CHARS = 200
_PROMPT_SOURCE = 4000  # characters that are searched for secrets


def configure(parser: CommandParser) -> None:
    parser.add_argument("--agent", dest="of_agent", metavar="NAME", help="only the sessions of this agent or account")
    parser.add_argument("--here", action="store_true", help="only the sessions of the current folder")
    parser.add_argument("--limit", metavar="N", type=parse_count, default=20, help="show at most N (default 20)")


def execute(args: Namespace, home: Home, out: Output) -> int:
    search, here = SessionSearch(home.config, os.environ), os.path.realpath(os.getcwd())
    found = search.find_sessions(args.of_agent)
    if args.here:
        found = (one for one in found if one.folder and os.path.realpath(one.folder) == here)
    shown = [_describe(one, home) for one in islice(found, args.limit)]
    if out.json:
        out.print_json_lines(shown)
    elif out.stdout.is_terminal:
        _print_lines(shown, out)
    else:
        out.print_table((), [[str(value or "") for value in one.values()] for one in shown])
    if not shown:
        out.print_note(f"no sessions{' of this folder' if args.here else ''}")
    if search.unreadable:
        out.print_note(f"{pluralize(search.unreadable, 'file')} cannot be read")
    if shown and out.stdout.is_terminal:
        out.print_note(f"continue one: {out.format_command('run', 'PROMPT', '--agent', 'AGENT', '--session', 'ID')}")
    return 0


def _describe(one: FoundSession, home: Home) -> dict[str, Any]:
    owner = home.find_by_session(one.id)
    prompt = home.make_redactor().redact(one.prompt[:_PROMPT_SOURCE])
    return {
        "agent": one.agent,
        "session": one.id,
        "folder": one.folder,
        "at": format_iso(one.at),
        "run": owner.id if owner is not None else None,
        "prompt": format_line(prompt, _PROMPT_CHARS),
    }


def _print_lines(shown: list[dict[str, Any]], out: Output) -> None:
    """Two lines for each session: its id is never cut, because it is copied."""
    from datetime import datetime

    now = wall_ms()
    for one in shown:
        at = round(datetime.fromisoformat(one["at"]).timestamp() * 1000)
        parts = (one["session"], format_age(at, now), f"run {one['run']}" if one["run"] else "")
        agent = out.colorize(make_printable(one["agent"]), "bold")
        out.print_line(f"{agent}  {make_printable('  '.join(filter(None, parts)))}")
        out.print_line(shorten_text(make_printable(f"    {one['folder']}: {one['prompt']}"), out.terminal_width() - 1))
