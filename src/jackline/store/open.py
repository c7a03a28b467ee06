"""The door to the store: a path opens SQLite, an address opens PostgreSQL. The backend is imported on use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.errors import StoreError
from jackline.store import schema
from jackline.store.driver import Clock, Driver
from jackline.store.sql_store import SqlStore

if TYPE_CHECKING:
    from jackline.domain.secrets import Redactor
    from jackline.store.contract import Status, Store

_ADDRESSES = ("postgresql://", "postgres://")


def open_store(
    database: str,
    *,
    create: bool,
    read_only: bool = False,
    lease_clock: Clock | None = None,
    redactor: Redactor | None = None,
) -> Store:
    """The store of a database; `create` makes and migrates a file, but never changes a server's schema.

    Without a `redactor` the values of this process's secret variables are known to it.
    """
    driver = _driver(database, create=create and not read_only, read_only=read_only, clock=lease_clock)
    try:
        if create and not read_only and driver.backend == "sqlite" and driver.version() != schema.latest():
            schema.migrate(driver, _now())
        schema.ensure(driver)
    except BaseException:
        driver.close()
        raise
    return SqlStore(driver, redactor)


def migrate(database: str) -> list[str]:
    """Bring a database to the schema that this jackline knows; the names of what was applied."""
    driver = _driver(database, create=True)
    try:
        return schema.migrate(driver, _now())
    finally:
        driver.close()


def database_status(database: str) -> Status:
    """The state of a database whose schema this jackline need not be able to work with."""
    from jackline.store.upkeep import status_of

    driver = _driver(database, create=False, read_only=True)
    try:
        return status_of(driver)
    finally:
        driver.close()


def _driver(database: str, *, create: bool, read_only: bool = False, clock: Clock | None = None) -> Driver:
    if database.startswith(_ADDRESSES):
        return _postgres(database, read_only=read_only, clock=clock)
    from jackline.store.sqlite import SqliteDriver

    return SqliteDriver(database, create=create, read_only=read_only, clock=clock)


def _postgres(address: str, *, read_only: bool, clock: Clock | None) -> Driver:
    try:
        from jackline.store.postgres import PostgresDriver
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("psycopg"):
            raise
        raise StoreError("PostgreSQL needs psycopg: pip install 'jackline[postgres]'") from error
    return PostgresDriver(address, read_only=read_only, clock=clock)


def _now() -> int:
    return time.time_ns() // 1_000_000
