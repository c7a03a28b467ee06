"""Decides which database address the agents of a run see: never one with a password. Opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.app.config import Config

_PROCESS_SOURCES = ("JACKLINE_DATABASE", "--database")


def handed_over(config: Config) -> str:
    """The address that a `jackline` inside a run could not find in the user's config file.

    An address with a password is hidden from agents: put it into config.toml, or the password into ~/.pgpass.
    """
    address = config.text("database")
    if not address or config.sources["database"] not in _PROCESS_SOURCES:
        return ""
    return "" if bears_password(address) else address


def bears_password(address: str) -> bool:
    """Whether the address contains a password; an invalid address counts as one."""
    if "://" not in address:
        return False
    from jackline.errors import StoreError

    try:
        from jackline.store.postgres_address import Address

        return bool(Address.parse(address).secrets)
    except (StoreError, ImportError):
        return True
