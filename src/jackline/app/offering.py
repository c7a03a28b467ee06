"""Whether the agents of a run get jackline's own MCP server, and by which command line. It starts nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jackline.app.handing import bears_password, handed_over

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config

# Not the folder that it is started in: a project may well have a folder of its own that is called `mcp`.
_COMMAND = ("-P", "-m", "jackline", "mcp")


def offered(config: Config, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The command line, empty if there is none; and why there is none, where somebody should know."""
    from importlib.util import find_spec

    if config.text("mcp") == "off" or find_spec("mcp") is None:
        return (), ""
    missing = _unreachable(config, environ)
    return ((), missing) if missing else ((sys.executable, *_COMMAND), "")


def _unreachable(config: Config, environ: Mapping[str, str]) -> str:
    """What keeps a server inside of a run from the database: agents get no passwords, and no variables of libpq."""
    address = config.text("database")
    if "://" not in address:
        return ""
    named = next((name for name in sorted(environ) if name.startswith("PG") and environ[name]), "")
    if named:
        return f"the database is found by {named}, which agents do not see: put the whole address into config.toml"
    by_process = config.sources["database"] in {"JACKLINE_DATABASE", "--database"}
    if by_process and not handed_over(config) and bears_password(address):
        return "the database's address holds a password, which agents do not see: put the address into config.toml"
    return ""
