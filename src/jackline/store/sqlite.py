"""The SQLite driver: one file in WAL mode; a synced commit returns when it is on disk. It knows SQL only by name.

Commits are appended to one write-ahead log, and a synced commit syncs that whole file: every earlier commit, of this
process or another, is on disk with it. After a power cut SQLite reads the log up to the first frame whose running
checksum is wrong, so that what is lost is always its end. NORMAL syncs the log before each checkpoint; OFF would not.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from jackline.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from jackline.store import queries, sqlite_file
from jackline.store.driver import Clock, RetryTransaction, Row, Statements, T, Values

_BUSY_SECONDS = 10.0  # a safety net only: the gate file admits one writer at a time
_SYNCED, _UNSYNCED = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"
_CONNECTION: dict[str, Any] = {
    "uri": True,
    "timeout": _BUSY_SECONDS,
    "isolation_level": None,
    "check_same_thread": False,
    "cached_statements": 128,
}


_known_boot: list[str] = []  # read once, because a process does not outlive its boot


def read_boot_clock() -> tuple[str, int]:
    """The lease clock of one host: it cannot be set, and it counts sleep."""
    from jackline import clock

    if not _known_boot:
        _known_boot.append(clock.boot_id())
    return _known_boot[0], clock.boot_ms()


class SqliteDriver:
    """One connection, shared by the threads of a process; reads do not wait for writers of other processes."""

    backend = "sqlite"

    def __init__(self, path: str, *, create: bool, read_only: bool = False, clock: Clock | None = None) -> None:
        self.place = path
        self._clock = clock or read_boot_clock
        self._sql = queries.ConvertedQueries(queries.load_queries(self.backend), _convert_query)
        self._gate = sqlite_file.GateFile(path + ".gate")
        # Two locks, so that a thread that waits for the gate file does not block readers.
        self._writer = threading.RLock()
        self._lock = threading.RLock()
        # A home that cannot be written can still be read; a write to it is StoreReadOnly.
        read_only = read_only or not (create or sqlite_file.is_folder_writable(path))
        self._connection = self._open(create=create, read_only=read_only)

    # statements
    def one(self, name: str, values: Values) -> Row | None:
        sql, picked = self._sql[name]
        row: Row | None = self._connection.execute(sql, picked(values)).fetchone()
        return row

    def all(self, name: str, values: Values) -> list[Row]:
        sql, picked = self._sql[name]
        return self._connection.execute(sql, picked(values)).fetchall()

    def run(self, name: str, values: Values) -> int:
        sql, picked = self._sql[name]
        return self._connection.execute(sql, picked(values)).rowcount

    def listing(self, sql: str, values: Values) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def clock(self) -> Values:
        boot, now = self._clock()
        return {"clock_boot": boot, "clock_now": now}

    # transactions
    def read(self, work: Callable[[Statements], T]) -> T:
        with self._lock:
            try:
                return work(self)
            except sqlite3.Error as error:
                raise translate_error(error, self.place) from error

    def snapshot(self, work: Callable[[Statements], T]) -> T:
        def read(_: Statements) -> T:
            self._connection.execute("BEGIN")
            try:
                return work(self)
            finally:
                self._connection.execute("ROLLBACK")

        return self.read(read)

    def write(self, work: Callable[[Statements], T], *, synced: bool = True) -> T:
        with self._writer:
            self._gate.enter()
            try:
                with self._lock:
                    return self._transaction(work) if synced else self._transact_unsynced(work)
            except sqlite3.Error as error:
                raise translate_error(error, self.place) from error
            finally:
                self._gate.leave()

    def _transact_unsynced(self, work: Callable[[Statements], T]) -> T:
        self._connection.execute(_UNSYNCED)  # before BEGIN: inside a transaction the setting cannot change
        try:
            return self._transaction(work)
        finally:
            self._connection.execute(_SYNCED)

    def _transaction(self, work: Callable[[Statements], T]) -> T:
        connection = self._connection
        while True:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(self)
                connection.execute("COMMIT")
                return result
            except RetryTransaction:
                continue
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    # schema
    def version(self) -> int:
        return self.read(lambda _: int(self._connection.execute("PRAGMA user_version").fetchone()[0]))

    def migrate(self, version: int, script: str, work: Callable[[Statements], None]) -> bool:
        def apply(_: Statements) -> bool:
            if self._connection.execute("PRAGMA user_version").fetchone()[0] >= version:
                return False
            for statement in sqlite_file.split_statements(script):
                self._connection.execute(statement)
            work(self)
            self._connection.execute(f"PRAGMA user_version = {version:d}")
            return True

        return self.write(apply)

    # upkeep
    def damage(self) -> list[str]:
        with self._lock:
            try:
                pages = [row[0] for row in self._connection.execute("PRAGMA integrity_check")]
                orphans = self._connection.execute("PRAGMA foreign_key_check").fetchall()
            except sqlite3.DatabaseError as error:
                return [f"{self.place}: {error}"]
        found = [] if pages == ["ok"] else pages
        return found + [f"a row of {row[0]} points to a missing row of {row[2]}" for row in orphans]

    def size(self) -> int:
        return self.read(lambda statements: int((statements.one("size", {}) or (0,))[0]))

    def backup(self, path: str) -> None:
        with self._lock:
            try:
                sqlite_file.backup(self._connection, path)
            except sqlite3.Error as error:
                raise translate_error(error, path) from error

    def close(self) -> None:
        with self._writer, self._lock:
            sqlite_file.disconnect(self._connection)
            self._gate.close()

    # opening
    def _open(self, *, create: bool, read_only: bool) -> sqlite3.Connection:
        try:
            connection = sqlite_file.connect(self.place, create=create, read_only=read_only, **_CONNECTION)
        except sqlite3.Error as error:
            raise translate_error(error, self.place) from error
        try:
            self._set_up(connection, read_only=read_only)
        except sqlite3.Error as error:
            sqlite_file.disconnect(connection)
            raise translate_error(error, self.place) from error
        return connection

    def _set_up(self, connection: sqlite3.Connection, *, read_only: bool) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(_SYNCED)
        if sys.platform == "darwin":
            connection.execute("PRAGMA fullfsync = ON")
        if not read_only and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._gate.enter()
            try:
                # The mark first: it must be in the file itself before the write-ahead log takes over.
                connection.execute(f"PRAGMA application_id = {sqlite_file.MARK}")
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                self._gate.leave()


def _convert_query(_name: str, sql: str) -> tuple[str, Callable[[Values], tuple[object, ...]]]:
    """A query with question marks, and the function that picks its parameters from the values."""
    marked, names = queries.use_question_marks(sql)
    match names:
        case ():
            return marked, lambda _: ()
        case (name,):
            return marked, lambda values: (values[name],)
    return marked, itemgetter(*names)


def translate_error(error: sqlite3.Error, place: str) -> StoreError:
    """The error of jackline for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFull(place)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreReadOnly(place)
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return StoreCorrupt(place)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(f"{place}: {error}")
    return StoreError(f"{place}: {error}")
