"""Asks a person at the terminal to confirm that they changed their own files while a run was active."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.answer_input import has_terminal
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.own_files import UnconfirmedChange
    from jackline.cli.output import Output


def confirm_own_files(home: Home, out: Output) -> None:
    """Ask about an unconfirmed change before work starts; Refused without a terminal, or if it was not theirs."""
    from jackline.app.own_files import find_unconfirmed, refuse_fresh_changes, refuse_unconfirmed

    home.migrate()
    change = find_unconfirmed(home)
    if change is not None and has_terminal(out):
        ask_about_change(home, change, out)
    refuse_unconfirmed(home)
    refuse_fresh_changes(home, home.config.loaded_at)
    home.has_confirmed_settings = True


def ask_about_change(home: Home, change: UnconfirmedChange, out: Output) -> bool:
    """Show what changed and ask; True if it is confirmed now."""
    from jackline.app.own_files import confirm_changes
    from jackline.cli.prompts import ask_confirmation

    out.print_note("changed since you started a run:")
    for path in change.files:
        out.print_note(f"  {make_printable(path)}{'' if path in change.digests else ' (removed)'}")
    for project in change.projects:
        out.print_note(f"  trust.json: trust in {make_printable(project)}, not given by `jackline trust`; it is void")
    if change.moved_to:
        out.print_note(f"  your settings name another home or database: {make_printable(change.moved_to)}")
    if not ask_confirmation("Did you change this, and is it right?", out, default=False):
        return False
    confirm_changes(home, change)
    return True
