"""What a SQLite connection really has set, read from itself. It changes nothing."""

from __future__ import annotations

import sqlite3

_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def describe(connection: sqlite3.Connection) -> str:
    """The two settings that decide what a commit costs and what a power cut can take."""
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    return f"journal_mode={journal}, synchronous={_SYNCHRONOUS[synchronous]}"
