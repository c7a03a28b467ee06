"""Builds what jackline passes to the agents of a run: the database address and the MCP server. Starts nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.config import Config

# A file that needs no other package, named by its path: importing the package would take longer than all that it does.
_RELAY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "features", "mcp", "relay.py")
_COMMAND = ("-I", "-S", _RELAY)
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


def build_mcp_argv(config: Config, environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The server's command line; or an empty one, with the reason if the user should know it."""
    if config.get_text("mcp") == "off":
        return (), ""
    address = config.get_text("database")
    if "://" in address:  # agents get no passwords and no libpq variables
        variable = next((name for name in sorted(environ) if name.startswith("PG") and environ[name]), "")
        if variable:
            hint = "put the whole address into config.toml"
            return (), f"the database depends on {variable}, which agents do not see; {hint}"
        if config.sources["database"] in _PROCESS_SOURCES and has_password(address):
            hint = "put the address into config.toml"
            return (), f"the database address contains a password, which agents do not see; {hint}"
    return (sys.executable, *_COMMAND), ""
