"""`jackline inbox`: lists what needs a person, in all repositories; at a terminal it asks about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.cli.answer_input import has_terminal
from jackline.cli.inbox_text import format_body, format_heading
from jackline.cli.own_files_prompt import confirm_own_files
from jackline.cli.run_json import to_json_values
from jackline.clock import wall_ms

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

INSIDE_RUN = ("--list", "--json")  # what else it does is for a person


def configure(parser: CommandParser) -> None:
    parser.add_argument("--list", action="store_true", help="only list, as in a pipe; ask nothing")
    parser.epilog = (
        "At a terminal, you are asked about each entry: Enter leaves it for later, ? explains the answers. Then runs "
        "that can continue, and that no process waits for, are resumed in the background."
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    entries = inbox.list_entries(home)
    if out.json:
        out.print_json_lines(entry_to_json(entry) for entry in entries)
        return 0
    if not entries:
        out.print_line("nothing needs you")
        return 0
    if not args.list and out.stdout.is_terminal and has_terminal(out):
        from jackline.cli.inbox_walk import walk_inbox

        confirm_own_files(home, out)  # it resumes runs
        entries = [entry for entry in entries if entry.kind != inbox.SETTINGS]
        return walk_inbox(home, entries, out) if entries else 0
    now = wall_ms()
    for entry in entries:
        print_entry(entry, now, out)
    return 0


def print_entry(entry: InboxEntry, now: int, out: Output) -> None:
    """Print an entry with all its commands."""
    out.print_line(format_heading(entry, now))
    for line in format_body(entry):
        out.print_line(f"  {line}")
    for words in entry.commands:
        out.print_line(f"  {out.format_command(*words)}")


def entry_to_json(entry: InboxEntry) -> dict[str, object]:
    """The entry as JSON values; its commands can be pasted into a shell."""
    from jackline.formatting import format_command

    commands = [format_command("jackline", *words) for words in entry.commands]
    return {**to_json_values(entry), "commands": commands}
