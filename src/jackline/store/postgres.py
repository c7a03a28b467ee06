"""The PostgreSQL driver: one connection that survives outages and writes nothing twice. It knows SQL only by name.

A transaction is a function that can be run again. If the connection is lost during COMMIT, the driver asks the server
afterwards for the status of the transaction and for its last event: a commit whose answer was lost is not repeated, and
one that was lost is. A commit that does not wait for its sync may be lost after its answer, when the server dies; the
next one that waits syncs all before it, because the server's log is written in order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg import conninfo
from psycopg import errors as sql_errors

from jackline.errors import Refused, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from jackline.store import queries
from jackline.store.driver import Clock, RetryTransaction, Row, Statements, T, Values

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a database."""

    parts: dict[str, Any]
    shown: str
    secrets: tuple[str, ...]

    @classmethod
    def parse(cls, address: str) -> Address:
        """Parse a `postgresql://` address; the error does not repeat an invalid one, which may hold a password."""
        try:
            parts: dict[str, Any] = conninfo.conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            hint = "the database's address cannot be read: write postgresql://user:password@host:5432/name"
            raise StoreError(hint) from error
        secrets = [str(parts[name]) for name in ("password", "sslpassword") if parts.get(name)]
        return cls(parts, _hide_password(parts), (*secrets, *(quote(secret, safe="") for secret in secrets)))

    def without_password(self, text: str) -> str:
        """The text, safe to show."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def _hide_password(parts: dict[str, Any]) -> str:
    user = f"{parts['user']}@" if parts.get("user") else ""
    host = quote(str(parts.get("host") or parts.get("hostaddr") or ""), safe="[]:,.")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{host}{port}/{parts.get('dbname') or ''}"


OUTAGE_SECONDS = 15.0
# After two outages in a row, by when a lease has ended, nothing waits any more: a service has to stop in time.
_LONG_OUTAGES = 2
_UNREACHABLE: dict[str, float] = {}  # the addresses that this process has waited for in vain, and since when
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_DATABASE_CLOCK = {
    "clock_boot": "'database'",
    "clock_now": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}
# A stopped client must not hold a row forever, and a server must not trade durability for speed here.
_SESSION = """
SELECT set_config('lock_timeout', '15s', false),
    set_config('idle_in_transaction_session_timeout', '15s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', %(read_only)s, false),
    set_config('synchronous_commit',
        COALESCE(NULLIF(current_setting('synchronous_commit'), 'off'), 'on'), false)
"""
# A dead network is noticed before the driver gives up; the address takes precedence.
CONNECT_DEFAULTS: dict[str, Any] = {
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# By prefix of a query's name: queries that lock the row they read; `pick_*` skips rows that others have locked.
_LOCKS = {"lock_": " FOR UPDATE", "pick_": " FOR UPDATE SKIP LOCKED"}
_LIMITS = ("limit", "most")
_BEGIN = "BEGIN; SELECT CAST(pg_current_xact_id() AS TEXT)"
_BEGIN_UNSYNCED = "BEGIN; SET LOCAL synchronous_commit = off; SELECT CAST(pg_current_xact_id() AS TEXT)"
_STATUS = "SELECT pg_xact_status(CAST(%s AS xid8))"
_EVENT = "SELECT 1 FROM events WHERE stream = %(stream)s AND seq = %(seq)s AND hash = %(hash)s"
_OUTAGES = (
    sql_errors.AdminShutdown,
    sql_errors.CrashShutdown,
    sql_errors.CannotConnectNow,
    sql_errors.TooManyConnections,
    sql_errors.IdleInTransactionSessionTimeout,
    sql_errors.ConnectionException,
)
_RACES = (sql_errors.SerializationFailure, sql_errors.DeadlockDetected)


class _OutcomeUnknown(Exception):
    """The connection was lost while a commit was under way."""

    def __init__(self, transaction: str, event: Values | None, result: object, cause: psycopg.Error) -> None:
        super().__init__(transaction)
        self.transaction = transaction
        self.event = event
        self.result = result
        self.cause = cause


class PostgresDriver:
    """One connection, shared by the threads of a process one at a time."""

    backend = "postgres"

    def __init__(
        self,
        address: str,
        *,
        read_only: bool = False,
        clock: Clock | None = None,
        outage: float = OUTAGE_SECONDS,
    ) -> None:
        self._text, self._address = address, Address.parse(address)
        self.place = self._address.shown
        self._read_only = read_only
        self._clock = clock
        self._outage = outage
        self._expressions = {} if clock else _DATABASE_CLOCK
        self._sql = queries.ConvertedQueries(queries.load_queries(self.backend), self._convert_query)
        self._lock = threading.RLock()
        self._event: Values | None = None  # the last one that the current transaction has written
        try:
            self._connection = self._connect_twice()
        except psycopg.Error as error:
            raise self._translate(error) from error

    # statements
    def one(self, name: str, values: Values) -> Row | None:
        return self._connection.execute(self._sql[name], values).fetchone()

    def all(self, name: str, values: Values) -> list[Row]:
        return self._connection.execute(_inline_limits(self._sql[name], values), values).fetchall()

    def run(self, name: str, values: Values) -> int:
        if name == "add_event":
            self._event = values
        return self._connection.execute(self._sql[name], values).rowcount

    def listing(self, sql: str, values: Values) -> list[Row]:
        return self._connection.execute(_inline_limits(self._convert_query("", sql), values), values).fetchall()

    def clock(self) -> Values:
        if self._clock is None:
            return {}
        boot, now = self._clock()
        return {"clock_boot": boot, "clock_now": now}

    # transactions
    def read(self, work: Callable[[Statements], T]) -> T:
        return self._retry(lambda: work(self))

    def snapshot(self, work: Callable[[Statements], T]) -> T:
        def read() -> T:
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return work(self)
            finally:
                self._roll_back()

        return self._retry(read)

    def write(self, work: Callable[[Statements], T], *, synced: bool = True) -> T:
        return self._retry(lambda: self._transaction(work, _BEGIN if synced else _BEGIN_UNSYNCED))

    def _transaction(self, work: Callable[[Statements], T], begin: LiteralString) -> T:
        transaction = self._begin(begin)
        try:
            result = work(self)
        except BaseException:
            self._roll_back()
            raise
        try:
            self._connection.execute("COMMIT")
        except psycopg.Error as error:
            if self._is_outage(error):
                raise _OutcomeUnknown(transaction, self._event, result, error) from error
            raise
        return result

    def _begin(self, begin: LiteralString) -> str:
        """Begin, and read the transaction's id in the same round trip."""
        self._event = None
        cursor = self._connection.execute(begin)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        return "" if row is None else str(row[0])

    def _roll_back(self) -> None:
        if self._connection.closed or self._connection.broken:
            return
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.OperationalError:
            self._connection.close()  # the server has rolled back by itself; the first error matters

    # outages
    def _retry(self, action: Callable[[], T]) -> T:
        """Run the action; run it again after a lost race or a short outage."""
        with self._lock:
            backoff = _Backoff(self._outage)
            while True:
                is_new = self._connection.closed
                try:
                    if is_new:
                        self._connection = self._connect()
                    return action()
                except RetryTransaction:
                    continue
                except _RACES as error:
                    if not backoff.pause():
                        raise self._translate(error) from error
                except _OutcomeUnknown as unknown:
                    if self._was_committed(unknown, backoff):
                        return unknown.result  # type: ignore[return-value]
                except psycopg.Error as error:
                    self._pause_for_outage(error, backoff, is_new=is_new)

    def _pause_for_outage(self, error: psycopg.Error, backoff: _Backoff, *, is_new: bool) -> None:
        """Wait before the next try; raise the error if no new connection can help, or the outage lasts for long."""
        if not self._is_outage(error):
            raise self._translate(error) from error
        self._connection.close()
        since = _UNREACHABLE.get(self._text)
        is_long = since is not None and time.monotonic() - since >= _LONG_OUTAGES * self._outage
        if (is_new and is_long) or not backoff.pause():
            _UNREACHABLE.setdefault(self._text, time.monotonic() - self._outage)
            raise self._translate(error) from error

    def _was_committed(self, unknown: _OutcomeUnknown, backoff: _Backoff) -> bool:
        """Ask over a new connection whether a transaction was committed whose commit got no answer."""
        while backoff.pause():
            try:
                self._connection.close()
                self._connection = self._connect()
                status = self._read_transaction_status(unknown.transaction)
                if status != "in progress":
                    return status == "committed" and self._has_event(unknown.event)
            except psycopg.Error as error:
                if not self._is_outage(error):
                    raise self._translate(error) from error
        raise self._translate(unknown.cause) from unknown.cause

    def _read_transaction_status(self, transaction: str) -> str | None:
        try:
            row = self._connection.execute(_STATUS, (transaction,)).fetchone()
        except sql_errors.InvalidParameterValue:
            return None  # "in the future": the server crashed before it had recorded the transaction
        return None if row is None else str(row[0])

    def _has_event(self, event: Values | None) -> bool:
        """After a crash the server reuses the ids of lost transactions, but the hash of an event is unique."""
        return event is None or self._connection.execute(_EVENT, event).fetchone() is not None

    def _is_outage(self, error: psycopg.Error) -> bool:
        """Whether a new connection may help."""
        if isinstance(error, _OUTAGES):
            return True
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and error.sqlstate is None

    def _connect(self) -> psycopg.Connection[Row]:
        connection = psycopg.connect(autocommit=True, **{**CONNECT_DEFAULTS, **self._address.parts})
        connection.execute(_SESSION, {"read_only": "on" if self._read_only else "off"})
        _UNREACHABLE.pop(self._text, None)
        return connection

    def _connect_twice(self) -> psycopg.Connection[Row]:
        """Connect; after a timeout once more, because a process that was suspended meanwhile finds its time over."""
        try:
            return self._connect()
        except sql_errors.ConnectionTimeout:
            return self._connect()

    # schema
    def version(self) -> int:
        return self.read(_read_version)

    def migrate(self, version: int, script: str, work: Callable[[Statements], None]) -> bool:
        def apply(_: Statements) -> bool:
            self._connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('jackline.' || current_schema(), 0))"
            )
            if _read_version(self) >= version:
                return False
            self._connection.execute(queries.collate_by_bytes(script).encode())
            work(self)
            return True

        return self.write(apply)

    # upkeep
    def damage(self) -> list[str]:
        """Empty: the server checks its own pages, with `pg_amcheck`."""
        return []

    def size(self) -> int:
        return self.read(lambda statements: int((statements.one("size", {}) or (0,))[0]))

    def backup(self, path: str) -> None:
        command = f"pg_dump --format=custom --file={path} '{self.place}'"
        raise Refused(f"PostgreSQL has its own backup: {command}")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _convert_query(self, name: str, sql: str) -> Any:  # noqa: ANN401 - psycopg wants a literal, which a file is not
        locked = sql + _LOCKS.get(name[:5], "")
        return queries.use_percent_parameters(locked, self._expressions)

    def _translate(self, error: psycopg.Error) -> StoreError:
        """The error of jackline for an error of PostgreSQL; never with the password."""
        said = self._address.without_password(" ".join(str(error).split()))
        match error:
            case sql_errors.DiskFull():
                return StoreFull(self.place)
            case sql_errors.InsufficientPrivilege() | sql_errors.ReadOnlySqlTransaction():
                return StoreReadOnly(f"{self.place}: {said}")
            case sql_errors.LockNotAvailable():
                return StoreUnavailable(f"{self.place}: another process holds a row for too long")
            case psycopg.OperationalError() | psycopg.InterfaceError():
                return StoreUnavailable(f"{self.place}: {said}")
        return StoreError(f"{self.place}: {said}")


class _Backoff:
    """Growing pauses, until the time limit of an outage."""

    def __init__(self, seconds: float) -> None:
        self._deadline: float | None = None
        self._seconds = seconds
        self._next = _PAUSE_SECONDS

    def pause(self) -> bool:
        """Wait; False when the time limit has passed."""
        now = time.monotonic()
        self._deadline = self._deadline or now + self._seconds
        left = self._deadline - now
        if left <= 0:
            return False
        time.sleep(min(self._next, left))
        self._next = min(2 * self._next, _LONGEST_PAUSE_SECONDS)
        return True


def _inline_limits(sql: str, values: Values) -> Any:  # noqa: ANN401 - as above
    """The query with its limits as numbers.

    The planner takes an unknown limit for a tenth of the table. On a big table it then makes a new plan each time,
    which takes longer than the query.
    """
    for name in _LIMITS:
        limit = values.get(name)
        if isinstance(limit, int):
            sql = sql.replace(f"%({name})s", str(limit))
    return sql


def _read_version(statements: Statements) -> int:
    if statements.one("has_schema", {}) is None:
        return 0
    applied = statements.all("applied_migrations", {})
    return int(applied[-1][0]) if applied else 0
