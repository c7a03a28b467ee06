"""Refuses commands inside a run, unless they declare that they work there.

A command's module declares it in `INSIDE_RUN`: the actions and flags with which it works inside a run of its home, or
`*` for the whole command. Without a declaration it is refused, and so is a new action. What only a person may do is not
declared: starting, continuing and ending runs, answers, trust, and changes of settings, homes and the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home

WHOLE_COMMAND = "*"


def works_inside_run(command: object, args: Namespace) -> bool:
    """Whether the command declares that it works inside a run with these arguments."""
    forms: tuple[str, ...] = getattr(command, "INSIDE_RUN", ())
    flags = (form[2:].replace("-", "_") for form in forms if form.startswith("--"))
    return (
        WHOLE_COMMAND in forms
        or getattr(args, "action", None) in forms
        or any(getattr(args, flag, False) is True for flag in flags)
    )


def refuse_undeclared(name: str, command: object, args: Namespace, home: Home) -> None:
    """Raise Refused if this process belongs to a run of the home, and the command does not work there."""
    if works_inside_run(command, args):
        return
    from jackline.app.identity import refuse_inside_run

    action = getattr(args, "action", None)
    refuse_inside_run(home, f"{name} {action}" if isinstance(action, str) else name)
