"""What the store asks of a backend: transactions and named statements. Contracts only; no SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]
Values = Mapping[str, object]
Clock = Callable[[], tuple[str, int]]

# A NUL cannot be stored by PostgreSQL, half a surrogate pair by neither. Compiled when a text gives reason to look.
_UNSTORABLE = "[\x00\ud800-\udfff]"


class Again(Exception):
    """Not an error: somebody else won a race; the transaction is to be rolled back and run once more."""


class Statements(Protocol):
    """The named queries, to be run inside a transaction or a read."""

    def one(self, name: str, values: Values) -> Row | None:
        """The first row."""
        ...

    def all(self, name: str, values: Values) -> list[Row]:
        """Every row."""
        ...

    def run(self, name: str, values: Values) -> int:
        """How many rows were changed."""
        ...

    def listing(self, sql: str, values: Values) -> list[Row]:
        """Every row of a query that `store.listing` put together in the language of the named queries."""
        ...

    def clock(self) -> Values:
        """The lease clock as parameters; empty where the database's own clock stands in the queries."""
        ...


class Driver(Protocol):
    """One connection to one database, safe to share between threads."""

    @property
    def backend(self) -> str:
        """`sqlite` or `postgres`."""
        ...

    @property
    def place(self) -> str:
        """Where the database is, without a password."""
        ...

    def write(self, work: Callable[[Statements], T]) -> T:
        """Run `work` in a durable transaction; it may be run again, so it changes nothing else."""
        ...

    def read(self, work: Callable[[Statements], T]) -> T:
        """Run `work` without a transaction; it never waits for writers."""
        ...

    def snapshot(self, work: Callable[[Statements], T]) -> T:
        """Run `work` so that all its reads see the same moment; it waits for no writer either."""
        ...

    def migrate(self, version: int, script: str, work: Callable[[Statements], None]) -> bool:
        """Bring the schema to `version` in one transaction; False if another process has done it meanwhile."""
        ...

    def version(self) -> int:
        """The version of the schema; 0 if there is none."""
        ...

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its pages and references."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def backup(self, path: str) -> None:
        """Copy everything to a new file."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...


def clean(text: str) -> str:
    """The text as both databases can store it: what cannot be stored becomes the replacement character."""
    if text.isascii() and "\x00" not in text:
        return text
    return re.sub(_UNSTORABLE, "\N{REPLACEMENT CHARACTER}", text)
