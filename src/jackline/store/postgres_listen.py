"""Listens for NOTIFY of PostgreSQL on a separate connection. It reads no data."""

from __future__ import annotations

import select
from typing import Self

import psycopg

from jackline.errors import StoreUnavailable
from jackline.store.postgres import CONNECT_DEFAULTS, Address


class NotifyConnection:
    """One connection that listens for the wake signal of services."""

    def __init__(self, address: str) -> None:
        """Connect, and listen; StoreUnavailable if the server cannot be reached."""
        self._parsed = Address.parse(address)
        try:
            self._connection = psycopg.connect(autocommit=True, **{**CONNECT_DEFAULTS, **self._parsed.parts})
            try:
                self._connection.execute("LISTEN jackline_wake")
            except psycopg.Error:
                self._connection.close()
                raise
        except psycopg.Error as error:
            raise self._translate(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def wait(self, stop: int) -> bool:
        """Wait for a notification; False if the descriptor `stop` is readable. StoreUnavailable after a loss."""
        try:
            while True:
                ready, _, _ = select.select([self._connection.fileno(), stop], [], [])
                if stop in ready:
                    return False
                if list(self._connection.notifies(timeout=0)):
                    return True
        except psycopg.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: psycopg.Error) -> StoreUnavailable:
        return StoreUnavailable(f"{self._parsed.shown}: {self._parsed.without_password(' '.join(str(error).split()))}")
