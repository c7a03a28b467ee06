"""Opens the store: SQLite for a path, PostgreSQL for an address. The backend is imported on use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.errors import StoreError
from jackline.store import schema
from jackline.store.driver import Clock, Driver
from jackline.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.secrets.redactor import Redactor
    from jackline.store.models import DatabaseStatus

_ADDRESSES = ("postgresql://", "postgres://")


def open_store(
    database: str,
    *,
    create: bool,
    read_only: bool = False,
    lease_clock: Clock | None = None,
    redactor: Redactor | Callable[[], Redactor] | None = None,
) -> Store:
    """The store of a database; `create` makes and migrates a file, but never changes a server's schema.

    `redactor` is one, or makes one when the first write needs it; without, secrets are recognized by their form only.
    """
    driver = _driver(database, create=create and not read_only, read_only=read_only, clock=lease_clock)
    try:
        if create and not read_only and driver.backend == "sqlite" and driver.version() != schema.get_latest_version():
            schema.migrate(driver, _now())
        schema.refuse_unusable(driver)
    except BaseException:
        driver.close()
        raise
    make_redactor = redactor if redactor is None or callable(redactor) else lambda: redactor
    return Store(driver, make_redactor)


def migrate(database: str) -> list[str]:
    """Bring a database to the schema of this jackline; returns the names of the migrations that were applied."""
    driver = _driver(database, create=True)
    try:
        return schema.migrate(driver, _now())
    finally:
        driver.close()


def database_status(database: str) -> DatabaseStatus:
    """The status of a database, even if this jackline cannot work with its schema."""
    from jackline.store.admin import read_status

    driver = _driver(database, create=False, read_only=True)
    try:
        return read_status(driver)
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
