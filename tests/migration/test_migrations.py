"""Migrations: every earlier database becomes what a new one is, on both backends, and nothing in it is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from jackline.domain.ids import repository_id
from jackline.domain.records import Run, RunStatus
from jackline.domain.spec import Spec
from jackline.errors import MigrationChanged, SchemaTooNew, SchemaTooOld
from jackline.store import rows, schema
from jackline.store.driver import Driver
from jackline.store.open import _driver, database_status, migrate, open_store
from jackline.store.store import Store
from tests.support.stores import AT, made

LATEST = schema.get_latest_version()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty database: a file's path, or a schema of a server."""
    if request.param == "sqlite":
        return str(tmp_path_factory.mktemp("home") / "state.sqlite")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def driver(place: str) -> Iterator[Driver]:
    driver = _driver(place, create=True)
    yield driver
    driver.close()


both = pytest.mark.parametrize("place", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
postgres = pytest.mark.parametrize("place", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)

_COLUMNS = """
    SELECT table_name, column_name, ordinal_position, data_type, is_nullable, column_default, collation_name
    FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 3
"""
_INDEXES = """
    SELECT tablename, indexname, replace(indexdef, current_schema(), '') FROM pg_indexes
    WHERE schemaname = current_schema() ORDER BY 2
"""
_TRIGGERS = """
    SELECT event_object_table, trigger_name, event_manipulation, action_timing
    FROM information_schema.triggers WHERE trigger_schema = current_schema() ORDER BY 1, 2, 3
"""
_CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace ORDER BY 1, 2
"""
_SHAPE = {
    "sqlite": ("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name",),
    "postgres": (_COLUMNS, _INDEXES, _TRIGGERS, _CONSTRAINTS),
}


def _rows(driver: Driver, sql: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = driver._connection.execute(sql).fetchall()  # type: ignore[attr-defined]
    return rows


def _shape(driver: Driver) -> list[list[tuple[Any, ...]]]:
    return [_rows(driver, sql) for sql in _SHAPE[driver.backend]]


@both
@pytest.mark.parametrize("version", range(LATEST))
def test_a_migrated_database_equals_a_new_one(
    driver: Driver, version: int, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if version:
        schema.migrate(driver, AT, upto=version)
        _made_by_an_older_jackline(driver)
    assert schema.list_pending(driver) == tuple(
        schema.format_label(one) for one in schema.list_migrations(driver.backend)[version:]
    )
    schema.migrate(driver, AT + 1)
    fresh = _fresh(driver, request, tmp_path_factory)
    assert _shape(driver) == _shape(fresh)
    assert (driver.version(), schema.list_pending(driver)) == (LATEST, ())
    fresh.close()
    if version:
        run = Store(driver).runs.get("run-1")
        assert run is not None
        assert run.spec.prompt == "mend it"


def _made_by_an_older_jackline(driver: Driver) -> None:
    """A run in the columns that the schema had then."""
    path = "/srv/repository"
    spec = Spec("mend it", path)
    run = Run("run-1", 1, repository_id(path), "run-1", None, spec, RunStatus(), None, 0, "", AT, AT)
    _insert(driver, "repositories", {"id": run.repository, "path": path, "next_number": 2, "created_at": AT})
    _insert(driver, "runs", rows.run_values(run, "as asked"))
    _insert(driver, "specs", {"run_id": run.id, "spec": rows.dump_spec(spec)})


def _insert(driver: Driver, table: str, values: dict[str, Any]) -> None:
    connection = driver._connection  # type: ignore[attr-defined]
    columns = [column[0] for column in connection.execute(f"SELECT * FROM {table} WHERE 1 = 0").description]
    known = [name for name in columns if name in values]
    marks = ", ".join(["?" if driver.backend == "sqlite" else "%s"] * len(known))
    sql = f"INSERT INTO {table} ({', '.join(known)}) VALUES ({marks})"
    connection.execute(sql, [values[name] for name in known])


def _fresh(driver: Driver, request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Driver:
    if driver.backend == "sqlite":
        other = _driver(str(folders.mktemp("fresh") / "state.sqlite"), create=True)
    else:
        from tests.support.postgres import schema_of_its_own

        context = schema_of_its_own(request.getfixturevalue("postgres_server"))
        other = _driver(context.__enter__(), create=True)
        request.addfinalizer(lambda: context.__exit__(None, None, None))
    schema.migrate(other, AT)
    return other


@both
def test_migrating_twice_changes_nothing(place: str) -> None:
    assert migrate(place) == [schema.format_label(one) for one in schema.list_migrations("sqlite")]
    assert migrate(place) == []


@both
def test_many_migrate_at_once_and_each_migration_is_applied_once(place: str) -> None:
    applied: list[str] = []
    begin = threading.Barrier(4)

    def go() -> None:
        begin.wait()
        applied.extend(migrate(place))

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(applied) == [schema.format_label(one) for one in schema.list_migrations("sqlite")]


@both
def test_a_failed_migration_leaves_nothing_behind(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    schema.migrate(driver, AT, upto=1)
    before = _shape(driver)
    monkeypatch.setattr(schema, "_read", lambda _: "CREATE TABLE half (\n    id TEXT\n);\nCREATE TABLE oops;\n")
    monkeypatch.setattr(schema, "verify_checksums", lambda _: None)
    with pytest.raises(Exception, match="syntax error"):
        schema.migrate(driver, AT)
    assert (_shape(driver), driver.version()) == (before, 1)


@both
def test_an_edited_migration_is_refused(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    schema.migrate(driver, AT, upto=1)
    read = schema._read
    monkeypatch.setattr(schema, "_read", lambda path: read(path) + "\n-- one more thing\n")
    with pytest.raises(MigrationChanged, match="migration 0001_runs was changed"):
        schema.migrate(driver, AT)


@postgres
def test_a_server_is_migrated_only_when_asked(place: str) -> None:
    for create in (True, False):
        with pytest.raises(SchemaTooOld, match="run `jackline db migrate`"):
            open_store(place, create=create)
    status = database_status(place)
    assert (status.schema, len(status.pending), status.size) == (0, LATEST, None)


@postgres
@pytest.mark.parametrize(("ahead", "refused"), [(1, False), (2, True)])
def test_a_worker_tolerates_a_schema_one_version_newer(place: str, driver: Driver, ahead: int, refused: bool) -> None:
    schema.migrate(driver, AT)
    _rows_of_newer(driver, LATEST + ahead)
    if refused:
        with pytest.raises(
            SchemaTooNew, match=f"has schema {LATEST + ahead}, but this jackline supports only {LATEST}"
        ):
            open_store(place, create=True)
    else:
        store = open_store(place, create=True)
        made(store)
        store.close()


def _rows_of_newer(driver: Driver, version: int) -> None:
    values = {"version": version, "name": "later", "checksum": "x", "at": AT}
    driver.write(lambda statements: statements.run("add_migration", values))


def test_the_numbers_have_no_gap() -> None:
    assert [one.version for one in schema.list_migrations("sqlite")] == list(range(1, LATEST + 1))


@both
def test_a_new_database_is_made_in_one_transaction(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks while somebody else makes it finds nothing or all of it, never schema 3 of 7."""
    steps: list[int] = []
    migrate_one = type(driver).migrate

    def counted(self: Driver, version: int, *rest: Any) -> bool:
        steps.append(version)
        return migrate_one(self, version, *rest)

    monkeypatch.setattr(type(driver), "migrate", counted)
    assert len(schema.migrate(driver, AT)) == LATEST
    assert steps == [LATEST]
