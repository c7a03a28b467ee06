"""`jackline doctor`: checks the installation; each problem comes with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import doctor
from jackline.cli.output import parse_columns
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_COLUMNS = parse_columns("STATE* PART FOUND FIX")
INSIDE_RUN = ("*",)


def configure(_parser: CommandParser) -> None:
    pass


def execute(_args: Namespace, home: Home, out: Output) -> int:
    found = list(doctor.check_installation(home))
    failed = any(one.state == doctor.FAIL for one in found)
    if out.json:
        out.print_json({"ok": not failed, "findings": [stored_dict(one) for one in found]})
    else:
        out.print_table(_COLUMNS, [[one.state, one.part, one.found, one.fix and f"→ {one.fix}"] for one in found])
    return 1 if failed else 0
