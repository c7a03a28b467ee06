"""Reads the effective settings of a SQLite connection. It changes nothing."""

from __future__ import annotations

import sqlite3

_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def describe(connection: sqlite3.Connection) -> str:
    """The two settings that decide the cost of a commit and the loss in a power cut."""
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
    return f"journal_mode={journal}, synchronous={_SYNCHRONOUS[synchronous]}"
