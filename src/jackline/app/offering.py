"""Decides whether the agents of a run get jackline's own MCP server, and by which command line. Starts nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jackline.app.handing import bears_password, handed_over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config

# -P keeps the current folder off the path: a project may have a folder `mcp`.
_COMMAND = ("-P", "-m", "jackline", "mcp")


def offered(config: Config, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The command line, or empty with the reason if the user should know it."""
    from importlib.util import find_spec

    if config.text("mcp") == "off" or find_spec("mcp") is None:
        return (), ""
    reason = _explain_unreachable(config, environ)
    return ((), reason) if reason else ((sys.executable, *_COMMAND), "")


def _explain_unreachable(config: Config, environ: Mapping[str, str]) -> str:
    """Why a server inside a run cannot reach the database: agents get no passwords and no libpq variables."""
    address = config.text("database")
    if "://" not in address:
        return ""
    variable = next((name for name in sorted(environ) if name.startswith("PG") and environ[name]), "")
    if variable:
        return f"the database depends on {variable}, which agents do not see; put the whole address into config.toml"
    by_process = config.sources["database"] in {"JACKLINE_DATABASE", "--database"}
    if by_process and not handed_over(config) and bears_password(address):
        return "the database address contains a password, which agents do not see; put the address into config.toml"
    return ""
