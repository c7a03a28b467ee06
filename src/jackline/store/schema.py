"""Numbered migrations: lists them, and applies those that a database lacks. The SQL is in files."""

from __future__ import annotations

import os

from jackline.digests import sha256
from jackline.errors import MigrationChanged, SchemaMissing, SchemaTooNew, SchemaTooOld
from jackline.named import NamedTuple
from jackline.store.driver import Driver, Statements

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")

_SECRET_BYTES = 32
# A worker of the previous version survives the upgrade of a shared database; a file has one program.
_NEWER_TOLERATED = {"sqlite": 0, "postgres": 1}


class Migration(NamedTuple):
    """One numbered change of the schema; the second file is for one backend only."""

    version: int
    name: str
    paths: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its SQL."""
        return "\n".join(_read(path) for path in self.paths if os.path.exists(path))

    @property
    def checksum(self) -> str:
        """Changes if a file is edited that databases were made from already."""
        return sha256(self.text.encode()).hexdigest()


def list_migrations(backend: str) -> list[Migration]:
    """All migrations, in order."""
    found = []
    for stem in sorted(_list_stems()):
        number, _, name = stem.partition("_")
        path = os.path.join(FOLDER, stem)
        found.append(Migration(version=int(number), name=name, paths=(f"{path}.sql", f"{path}.{backend}.sql")))
    return found


def get_latest_version() -> int:
    """The newest version of the schema that this jackline knows."""
    return max(int(stem[:4]) for stem in _list_stems())


def refuse_unusable(driver: Driver) -> None:
    """SchemaTooOld or SchemaTooNew unless this jackline can work with the database as it is."""
    version, known = driver.version(), get_latest_version()
    refuse_newer(driver, version, known)
    if version == 0:
        raise SchemaMissing("none", known=known)
    if version < known:
        raise SchemaTooOld(version, known=known)


def refuse_newer(driver: Driver, version: int, known: int) -> None:
    """SchemaTooNew if the database belongs to a later jackline."""
    if version > known + _NEWER_TOLERATED[driver.backend]:
        raise SchemaTooNew(version, known=known)


def migrate(driver: Driver, at: int, upto: int | None = None) -> list[str]:
    """Apply the missing migrations; returns their names.

    Each runs in its own transaction. In a new database all run in one, so that no reader finds it half made.
    """
    version, known = driver.version(), get_latest_version()
    refuse_newer(driver, version, known)
    verify_checksums(driver)
    wanted = [one for one in list_migrations(driver.backend) if version < one.version <= (upto or known)]
    steps = [wanted] if version == 0 and wanted else [[one] for one in wanted]
    return [format_label(one) for step in steps if _apply(driver, step, at) for one in step]


def verify_checksums(driver: Driver) -> None:
    """MigrationChanged if a file differs from the one that the database was made from."""
    if driver.version() == 0:
        return
    known = {one.version: one for one in list_migrations(driver.backend)}
    for version, name, checksum in driver.read(lambda statements: statements.all("applied_migrations", {})):
        if version in known and known[version].checksum != checksum:
            raise MigrationChanged(f"{version:04d}_{name}")


def list_pending(driver: Driver) -> tuple[str, ...]:
    """The names of the missing migrations."""
    version = driver.version()
    return tuple(format_label(one) for one in list_migrations(driver.backend) if one.version > version)


def format_label(one: Migration) -> str:
    """The number and the name, such as 0001_runs."""
    return f"{one.version:04d}_{one.name}"


def _apply(driver: Driver, step: list[Migration], at: int) -> bool:
    def record(statements: Statements) -> None:
        for one in step:
            values = {"version": one.version, "name": one.name, "checksum": one.checksum, "at": at}
            statements.run("add_migration", values)
        # The secret and the id of this instance: only the first migration sets them.
        statements.run("add_instance_value", {"name": "secret", "value": os.urandom(_SECRET_BYTES).hex()})
        statements.run("add_instance_value", {"name": "id", "value": os.urandom(8).hex()})

    return driver.migrate(step[-1].version, "\n".join(one.text for one in step), record)


def _list_stems() -> list[str]:
    """The names of the files that both backends read, such as 0001_runs, without their suffix."""
    parted = (name.split(".") for name in os.listdir(FOLDER))
    return [stem for stem, *rest in parted if rest == ["sql"] and stem[:4].isdigit()]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
