"""The interface of a database driver: transactions and named statements. No SQL here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]
Values = Mapping[str, object]
Clock = Callable[[], tuple[str, int]]

# PostgreSQL cannot store a NUL, and neither can store half a surrogate pair. Compiled on first use.
_UNSTORABLE = "[\x00\ud800-\udfff]"


class RetryTransaction(Exception):
    """Rolls the transaction back and runs it again, because another process won a race."""


class Statements(Protocol):
    """The named queries, run inside a transaction or a read."""

    def one(self, name: str, values: Values) -> Row | None:
        """The first row."""
        ...

    def all(self, name: str, values: Values) -> list[Row]:
        """Every row."""
        ...

    def run(self, name: str, values: Values) -> int:
        """Execute; returns the number of changed rows."""
        ...

    def listing(self, sql: str, values: Values) -> list[Row]:
        """Every row of a query that was built in the syntax of the named queries."""
        ...

    def clock(self) -> Values:
        """The lease clock as parameters; empty if the queries use the database's own clock."""
        ...


class Driver(Protocol):
    """One connection to one database, safe to share between threads."""

    @property
    def backend(self) -> str:
        """`sqlite` or `postgres`."""
        ...

    @property
    def place(self) -> str:
        """The path or the address of the database, without a password."""
        ...

    def write(self, work: Callable[[Statements], T], *, synced: bool = True) -> T:
        """Run `work` in a durable transaction; it may run more than once, so it must have no other side effects.

        Without `synced` the commit survives the death of this process, but a power cut may lose it until the next
        synced commit, which syncs everything before it.
        """
        ...

    def read(self, work: Callable[[Statements], T]) -> T:
        """Run `work` without a transaction; it never waits for writers."""
        ...

    def snapshot(self, work: Callable[[Statements], T]) -> T:
        """Run `work` so that all its reads see the same snapshot; it does not wait for writers."""
        ...

    def migrate(self, version: int, script: str, work: Callable[[Statements], None]) -> bool:
        """Bring the schema to `version` in one transaction; False if another process has done so already."""
        ...

    def version(self) -> int:
        """The version of the schema; 0 if there is none."""
        ...

    def damage(self) -> list[str]:
        """The problems that the database finds in its pages and references."""
        ...

    def size(self) -> int:
        """Bytes on disk."""
        ...

    def backup(self, path: str) -> None:
        """Copy everything to a new file."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def clean(text: str) -> str:
    """The text as both databases can store it: other characters become the replacement character."""
    if text.isascii() and "\x00" not in text:
        return text
    return re.sub(_UNSTORABLE, "\N{REPLACEMENT CHARACTER}", text)
