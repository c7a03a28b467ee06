"""Which database the agents of a run are told of: never one whose address holds a password. It opens nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.app.config import Config

_TOLD_TO_THIS_PROCESS = ("JACKLINE_DATABASE", "--database")


def handed_over(config: Config) -> str:
    """The address that a `jackline` inside of a run would not find by itself, as it does in the user's own file.

    With a password in it it is kept from agents: put the address into config.toml, or the password into ~/.pgpass.
    """
    address = config.text("database")
    if not address or config.sources["database"] not in _TOLD_TO_THIS_PROCESS:
        return ""
    return "" if bears_password(address) else address


def bears_password(address: str) -> bool:
    """Whether a password stands in the address; one that cannot be read is taken for one."""
    if "://" not in address:
        return False
    from jackline.errors import StoreError

    try:
        from jackline.store.postgres_address import Address

        return bool(Address.parse(address).secrets)
    except (StoreError, ImportError):
        return True
