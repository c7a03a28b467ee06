"""The file under SQLite: made private, judged before it is touched, refused with one clear line."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jackline.errors import (
    MigrationChanged,
    SchemaTooNew,
    SchemaTooOld,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from jackline.store import schema
from jackline.store.models import RunQuery
from jackline.store.open import database_status, migrate, open_store
from jackline.store.sqlite import translate_error
from jackline.store.sqlite_file import find_network_type
from jackline.store.store import Store
from tests.support.stores import begun, by_hand, made


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "jackline.db")


def _made(path: str) -> str:
    store = open_store(path, create=True)
    made(store)
    store.close()
    return path


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_home_is_private_from_the_first_moment(path: str) -> None:
    before = os.umask(0)
    try:
        store = open_store(path, create=True)
        made(store)
    finally:
        os.umask(before)
    folder = os.path.dirname(path)
    assert _mode(folder) == 0o700
    names = sorted(os.listdir(folder))
    assert names == ["jackline.db", "jackline.db-shm", "jackline.db-wal", "jackline.db.gate"]
    assert {_mode(os.path.join(folder, name)) for name in names} == {0o600}
    store.close()


def test_every_commit_is_on_disk_before_it_counts(path: str) -> None:
    store = open_store(path, create=True)
    settings = {name: by_hand(store, f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")}
    assert settings == {"journal_mode": "wal", "synchronous": 2}
    assert by_hand(store, "PRAGMA foreign_keys") == [(1,)]
    store.close()


@pytest.mark.parametrize("name", ["a b", "50%", "what?", "#1", "é", "a%20b"])
def test_any_name_of_a_folder_will_do(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name / "state.sqlite")
    _made(path)
    assert os.path.exists(path)
    assert os.listdir(tmp_path) == [name]


def test_a_light_command_imports_nothing_heavy(path: str) -> None:
    _made(path)
    program = (
        "import sys; before = set(sys.modules)\n"
        "from jackline.store.open import open_store\nfrom jackline.store.models import RunQuery\n"
        "store = open_store(sys.argv[1], create=False, read_only=True); store.runs.list_page(RunQuery())\n"
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    command = [sys.executable, "-c", program, path]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split()
    heavy = {
        "psycopg",
        "subprocess",
        "tempfile",
        "logging",
        "pathlib",
        "urllib.parse",
        "importlib.resources",
        "asyncio",
    }
    assert not heavy & set(loaded)


def test_nothing_is_made_unless_it_is_asked_for(path: str) -> None:
    with pytest.raises(StoreError, match=r"there is no database at .*jackline.db yet: `jackline run` makes one"):
        open_store(path, create=False)
    assert not os.path.exists(os.path.dirname(path))


def test_an_empty_file_is_a_database_to_be(path: str) -> None:
    """What a crash in the first instant leaves behind."""
    os.makedirs(os.path.dirname(path))
    with open(path, "wb"):
        pass
    _made(path)


def _foreign(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (id)")
    connection.commit()
    connection.close()


def _text(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"Dear diary, " * 100)


def _short(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"SQLite format 3\x00")


def _folder(path: str) -> None:
    os.makedirs(path)


@pytest.mark.parametrize("damage", [_foreign, _text, _short])
@pytest.mark.parametrize("create", [True, False])
def test_what_is_not_ours_is_left_untouched(path: str, damage: object, create: bool) -> None:
    os.makedirs(os.path.dirname(path))
    assert callable(damage)
    damage(path)
    before = Path(path).read_bytes()
    with pytest.raises(StoreCorrupt, match="damaged or not a jackline database; it was left untouched"):
        open_store(path, create=create)
    assert Path(path).read_bytes() == before
    assert os.listdir(os.path.dirname(path)) == ["jackline.db"]


def test_a_folder_in_its_place_is_an_error_in_words(path: str) -> None:
    _folder(path)
    with pytest.raises(StoreError, match="is not a regular file: move it away"):
        open_store(path, create=True)


def _page_of(path: str, table: str) -> int:
    connection = sqlite3.connect(path)
    page = int(connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0])
    connection.close()
    return page


def _damage(path: str, page: int) -> bytes:
    data = bytearray(Path(path).read_bytes())
    begin = 4096 * (page - 1) or 100  # the header of the file stays, so that only SQLite can tell
    data[begin : 4096 * page] = b"\xa5" * (4096 * page - begin)
    Path(path).write_bytes(data)
    return bytes(data)


def test_a_damaged_schema_is_left_as_it_is(path: str) -> None:
    before = _damage(_made(path), 1)
    with pytest.raises(StoreCorrupt):
        open_store(path, create=True)
    assert Path(path).read_bytes() == before


def test_a_damaged_page_is_found_and_left_as_it_is(path: str) -> None:
    _made(path)
    before = _damage(path, _page_of(path, "events"))
    store = open_store(path, create=False)
    with pytest.raises(StoreCorrupt):
        made(store, "run-2")
    assert store.runs.get("run-1") is not None
    assert store.verify.check_all() != []
    store.close()
    assert Path(path).read_bytes() == before


def _fill(store: Store, kept: list[str]) -> None:
    for number in range(1000):
        run = made(store, f"more-{number}", spec={"prompt": "x" * 20_000})
        kept += [run.id]


def test_a_full_disk_says_so_and_loses_nothing(path: str) -> None:
    store = open_store(path, create=True)
    made(store)
    pages = by_hand(store, "PRAGMA page_count")[0][0]
    by_hand(store, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull, match=r"the disk is full .*; free some space, then resume"):
        _fill(store, [])
    by_hand(store, "PRAGMA max_page_count = 1000000")
    made(store, "after")
    assert store.verify.check_all() == []
    store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system of one megabyte needs root")
def test_a_really_full_disk_says_so_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this container may not mount")
    try:
        store = open_store(str(folder / "jackline.db"), create=True)
        kept: list[str] = []
        with pytest.raises((StoreFull, StoreUnavailable)):
            _fill(store, kept)
        assert kept
        assert sorted(row.id for row in store.runs.list_page(RunQuery(limit=1000))) == sorted(kept)
        store.close()
    finally:
        subprocess.run(["umount", str(folder)], check=True)


_AS_NOBODY = """
    import os, sys
    # Everything is loaded before our own files, in a checkout that only its owner may read, are out of reach.
    from jackline.store import queries, schema, sqlite
    from jackline.store.open import open_store
    loaded, stems = queries.load_queries("sqlite"), schema._list_stems()
    queries.load_queries = lambda backend: loaded
    schema._list_stems = lambda: stems
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    try:
        open_store(sys.argv[1], create=sys.argv[2] == "create").close()
    except Exception as error:
        print(type(error).__name__, error)
"""


def _as_nobody(path: str, how: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(_AS_NOBODY), path, how]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_permissions_that_do_not_suffice_are_named(path: str, tmp_path: Path) -> None:
    _made(path)
    for parent in (tmp_path, *list(tmp_path.parents)[:-2]):
        os.chmod(parent, os.stat(parent).st_mode | stat.S_IXOTH)
    folder = os.path.dirname(path)
    os.chmod(folder, os.stat(folder).st_mode | stat.S_IROTH | stat.S_IXOTH)
    assert _as_nobody(path, "open").startswith(f"StoreError {path} cannot be read: Permission denied")
    os.chmod(path, os.stat(path).st_mode | stat.S_IROTH)
    assert _as_nobody(path, "open") == "", "who may not write may still read"
    assert _as_nobody(path, "create").startswith(f"StoreReadOnly the database cannot be written ({folder})")
    assert _as_nobody(str(tmp_path / "home" / "new.db"), "create").startswith("StoreReadOnly")


def test_a_database_on_a_still_medium_can_be_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _made(path)
    monkeypatch.setattr(os, "access", lambda *_: False)
    reader = open_store(path, create=False, read_only=True)
    assert reader.runs.list_page(RunQuery())[0].id == "run-1"
    reader.close()
    reader = open_store(path, create=False)
    assert reader.runs.list_page(RunQuery())[0].id == "run-1"
    with pytest.raises(StoreReadOnly):
        made(reader, "run-2")
    reader.close()
    with pytest.raises(StoreReadOnly):
        open_store(path, create=True)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me/state", "nfs4"),
        ("/home/other", None),
        ("/mnt/with space/x", "cifs"),
        ("/mnt/laptop", "fuse.sshfs"),
        ("/srv", None),
    ],
)
def test_a_network_file_system_is_recognised(folder: str, kind: str | None) -> None:
    mounts = (
        "/dev/vda / ext4 rw 0 0\nserver:/x /home/me nfs4 rw 0 0\ntmpfs /home/me2 tmpfs rw 0 0\n"
        "//server/s /mnt/with\\040space cifs rw 0 0\nme@laptop: /mnt/laptop fuse.sshfs rw 0 0\n"
    )
    assert find_network_type(folder, mounts) == kind


def test_a_home_on_a_network_file_system_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.major", lambda _: 0)
    monkeypatch.setattr("jackline.store.sqlite_file.find_network_type", lambda *_: "nfs4")
    with pytest.raises(StoreError, match=r"network file system \(nfs4\), where locks fail"):
        open_store(path, create=True)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_READONLY, StoreReadOnly),
        (sqlite3.SQLITE_READONLY_DIRECTORY, StoreReadOnly),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreCorrupt),
        (sqlite3.SQLITE_NOTADB, StoreCorrupt),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreUnavailable),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailable),
        (sqlite3.SQLITE_CONSTRAINT_TRIGGER, StoreError),
        (None, StoreError),
    ],
)
def test_each_code_of_sqlite_has_its_error(code: int | None, expected: type[StoreError]) -> None:
    error = sqlite3.OperationalError("said")
    if code is not None:
        error.sqlite_errorcode = code
    assert type(translate_error(error, "/x")) is expected


def test_a_newer_file_is_refused(path: str) -> None:
    _made(path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.get_latest_version() + 1}")
    connection.close()
    for create in (True, False):
        with pytest.raises(SchemaTooNew, match="upgrade jackline"):
            open_store(path, create=create)
    with pytest.raises(SchemaTooNew):
        migrate(path)


def test_an_older_file_is_migrated_by_a_command_that_writes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "get_latest_version", lambda: 1)
    open_store(path, create=True).close()
    monkeypatch.undo()
    with pytest.raises(SchemaTooOld, match="has schema 1, but this jackline needs"):
        open_store(path, create=False)
    status = database_status(path)
    assert (status.schema, status.pending[0], status.counts) == (1, "0002_ledger", {})
    store = open_store(path, create=True)
    begun(store)
    store.close()


def test_a_changed_migration_is_refused(path: str) -> None:
    _made(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
    connection.commit()
    connection.close()
    with pytest.raises(MigrationChanged, match="migration 0001_runs was changed after it was applied"):
        migrate(path)
