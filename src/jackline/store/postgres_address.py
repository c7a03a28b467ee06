"""The address of a PostgreSQL database: complete for the connection, without its password for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import conninfo

from jackline.errors import StoreError

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a database."""

    parts: dict[str, Any]
    shown: str
    secrets: tuple[str, ...]

    @classmethod
    def parse(cls, address: str) -> Address:
        """Parse a `postgresql://` address; the error does not repeat an invalid one, which may hold a password."""
        try:
            parts: dict[str, Any] = conninfo.conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            hint = "the database's address cannot be read: write postgresql://user:password@host:5432/name"
            raise StoreError(hint) from error
        secrets = [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]
        return cls(parts, _hide_password(parts), (*secrets, *(quote(secret, safe="") for secret in secrets)))

    def without_password(self, text: str) -> str:
        """The text, safe to show."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def _hide_password(parts: dict[str, Any]) -> str:
    user = f"{parts['user']}@" if parts.get("user") else ""
    host = quote(str(parts.get("host") or parts.get("hostaddr") or ""), safe="[]:,.")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"
