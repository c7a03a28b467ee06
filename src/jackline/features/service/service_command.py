"""`jackline service`: installs `jackline serve` as a systemd user unit, shows its state, or removes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.features.service import user_units
from jackline.formatting import make_printable
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.service.user_units import UnitState

NEEDS_PROJECT = False  # a service belongs to a home
INSIDE_RUN = ()
_ACTIONS = {
    "install": "write the unit of this home, enable it and start it",
    "status": "show whether the unit is installed and active",
    "remove": "stop the unit, disable it and delete it",
}
_LINGER = "your units stop when you log out: `loginctl enable-linger` lets them run without a login"


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    actions["install"].add_argument("--no-start", action="store_true", help="only write and enable it")


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "install":
            return _install(home, out, start=not args.no_start)
        case "remove":
            state = user_units.remove_unit(home, os.environ)
            return _print_removed(state, out)
        case _:
            return _print_state(user_units.read_unit_state(home, os.environ), out)


def _install(home: Home, out: Output, *, start: bool) -> int:
    home.create()
    state = user_units.install_unit(home, os.environ, start=start)
    if out.json:
        out.print_json(stored_dict(state))
        return 0
    out.print_line(f"wrote {make_printable(state.path)}")
    out.print_line(f"{state.name} is {state.enabled} and {state.active}; its log: journalctl --user -u {state.name}")
    if not state.lingers:
        out.print_note(_LINGER)
    for line in user_units.describe_lost_variables(home, os.environ):
        out.print_note(make_printable(line))
    return 0


def _print_removed(state: UnitState, out: Output) -> int:
    if out.json:
        out.print_json(stored_dict(state))
    elif state.is_installed:
        out.print_line(f"removed {make_printable(state.path)}")
    else:
        out.print_line(f"{state.name} is not installed")
    return 0


def _print_state(state: UnitState, out: Output) -> int:
    """Exit code 0 only if the service runs."""
    code = 0 if state.active == "active" else 1
    if out.json:
        out.print_json(stored_dict(state))
        return code
    if not state.is_installed:
        out.print_line(f"{state.name} is not installed; `jackline service install` does that")
        return code
    active = state.active or "unknown to this user's systemd"
    out.print_line(f"{state.name} is {active}{f' and {state.enabled}' if state.enabled else ''}")
    out.print_line(f"  {make_printable(state.path)}")
    if not state.lingers:
        out.print_note(_LINGER)
    if state.outdated:
        out.print_note(f"the unit is outdated: {state.outdated}; `jackline service install` writes it again")
    return code
