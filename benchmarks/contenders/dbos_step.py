"""DBOS on SQLite: a workflow with steps. It records the workflow, each step's result, and the workflow's end.

A step's result is recorded after it, without an intent before it: an interrupted step runs again.
"""

from __future__ import annotations

import os
import sqlite3

from dbos import DBOS  # type: ignore[import-not-found]  # only in .venv-bench
from sqlalchemy import Engine  # type: ignore[import-not-found]  # the same; DBOS brings it

from benchmarks.contenders import Prepared, pragmas

_BODY = "x" * 100
_STEPS_OF_MANY = 50


def prepare(folder: str, variant: str) -> Prepared:
    """`variant` is the journal mode or `shipped`, and how many steps there are: `shipped-one`, `wal-many`."""
    journal, _, length = variant.partition("-")
    path = os.path.join(folder, "dbos.db")
    if journal == "wal":
        # A property of the file, so DBOS uses it: its own engine sets no journal mode.
        sqlite3.connect(path).execute("PRAGMA journal_mode=WAL").close()
    dbos = DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{path}", "log_level": "ERROR"})
    step = DBOS.step()(_effect)
    steps = _STEPS_OF_MANY if length == "many" else 1

    def workflow() -> None:
        for _ in range(steps):
            step(_BODY)

    durable = DBOS.workflow()(workflow)
    DBOS.launch()
    return Prepared(durable, _settings(dbos), DBOS.destroy, units=steps)


def _effect(body: str) -> str:
    return body


def _settings(dbos: DBOS) -> str:
    engine: Engine = dbos._sys_db.engine  # noqa: SLF001 - a setting is visible on its own connection only
    with engine.connect() as connection:
        return pragmas.describe(connection.connection.dbapi_connection)
