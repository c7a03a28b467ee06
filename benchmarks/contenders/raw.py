"""The yardstick: two commits of one small row each, by the standard library alone."""

from __future__ import annotations

import os
import sqlite3

from benchmarks.contenders import Prepared, pragmas

_BODY = "x" * 100


def prepare(folder: str, variant: str) -> Prepared:
    """`variant` is the synchronous setting."""
    connection = sqlite3.connect(os.path.join(folder, "raw.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={variant}")
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def pair() -> None:
        for _ in range(2):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO notes (body) VALUES (?)", (_BODY,))
            connection.execute("COMMIT")

    return Prepared(pair, pragmas.describe(connection), connection.close)
