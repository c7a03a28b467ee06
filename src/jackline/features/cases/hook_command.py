"""`jackline case hook`: install the learning gate as a git hook, and answer hooks of git and of agents."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jackline.errors import JacklineError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

SUMMARY = "block commits until every learning is resolved: install, remove or show the git hook"
_LONGEST = 1_000_000


def configure(parser: CommandParser) -> None:
    """Add the arguments of `case hook`; hooks call the last two actions."""
    actions = ("install", "remove", "status", "pre-commit", "claude")
    text = "install, remove, status; pre-commit and claude are called by hooks"
    parser.add_argument("hook", metavar="ACTION", choices=actions, help=text)


def execute(args: Namespace, home: Home, out: Output) -> int:
    """Run an action; returns the exit code."""
    match args.hook:
        case "install" | "remove" | "status":
            return _manage_hook(args.hook, out)
        case "pre-commit":
            return _check_commit(home, out)
        case agent:
            return _remind(agent, home, out)


def _manage_hook(action: str, out: Output) -> int:
    from jackline.features.cases import git_hook

    changed = False
    if action == "status":
        hook = git_hook.read_hook_status(os.getcwd(), os.environ)
    else:
        do = git_hook.install_hook if action == "install" else git_hook.remove_hook
        hook, changed = do(os.getcwd(), os.environ)
    if out.json:
        out.print_json({"path": hook.path, "state": hook.state, "changed": changed})
    else:
        out.print_line(f"{hook.state}: {make_printable(hook.path)}")
    return 0


def _check_commit(home: Home, out: Output) -> int:
    """Block a commit only for unresolved learnings; a failure of jackline itself is reported and does not block."""
    from jackline.features.cases.git_hook import UNRESOLVED, find_blocking_learnings

    try:
        case_id, lines = find_blocking_learnings(home, os.getcwd(), os.environ)
    except JacklineError as error:
        out.print_note(f"jackline: {make_printable(str(error))}; the learnings were not checked")
        return 0
    if not lines:
        return 0
    for line in lines:
        out.print_note(f"jackline: {make_printable(line)}")
    count = f"{len(lines)} learnings of case {case_id} are" if len(lines) > 1 else f"a learning of case {case_id} is"
    reason = "`jackline case learning amend` changes it or gives a reason"
    out.print_note(f"jackline: {count} unresolved: stage the file ({reason}), or `git commit --no-verify`")
    return UNRESOLVED


def _remind(agent: str, home: Home, out: Output) -> int:
    """Remind an agent of its case after a compaction; a failure never disturbs the session."""
    from jackline.features.cases.compaction import build_reminder

    try:
        text = build_reminder(home, agent, b"" if sys.stdin is None else sys.stdin.buffer.read(_LONGEST))
    except JacklineError as error:
        out.print_note(f"jackline: {make_printable(str(error))}")
        return 0
    if text:
        out.print_line(text)
    return 0
