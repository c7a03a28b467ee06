"""Decides whether the agents of a run get jackline's own MCP server, and by which command line. Starts nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config


_PROCESS_SOURCES = ("JACKLINE_DATABASE", "--database")


def find_agent_database(config: Config) -> str:
    """The address that a `jackline` inside a run could not find in the user's config file.

    An address with a password is hidden from agents: put it into config.toml, or the password into ~/.pgpass.
    """
    address = config.get_text("database")
    if not address or config.sources["database"] not in _PROCESS_SOURCES:
        return ""
    return "" if has_password(address) else address


def has_password(address: str) -> bool:
    """Whether the address contains a password; an invalid address counts as one."""
    if "://" not in address:
        return False
    from jackline.errors import StoreError

    try:
        from jackline.store.postgres import Address

        return bool(Address.parse(address).secrets)
    except (StoreError, ImportError):
        return True


# -P keeps the current folder off the path: a project may have a folder `mcp`.
_COMMAND = ("-P", "-m", "jackline", "mcp")


def build_mcp_argv(config: Config, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The command line, or empty with the reason if the user should know it."""
    from importlib.util import find_spec

    if config.get_text("mcp") == "off" or find_spec("mcp") is None:
        return (), ""
    reason = _explain_unreachable(config, environ)
    return ((), reason) if reason else ((sys.executable, *_COMMAND), "")


def _explain_unreachable(config: Config, environ: Mapping[str, str]) -> str:
    """Why a server inside a run cannot reach the database: agents get no passwords and no libpq variables."""
    address = config.get_text("database")
    if "://" not in address:
        return ""
    variable = next((name for name in sorted(environ) if name.startswith("PG") and environ[name]), "")
    if variable:
        return f"the database depends on {variable}, which agents do not see; put the whole address into config.toml"
    by_process = config.sources["database"] in {"JACKLINE_DATABASE", "--database"}
    if by_process and not find_agent_database(config) and has_password(address):
        return "the database address contains a password, which agents do not see; put the address into config.toml"
    return ""
