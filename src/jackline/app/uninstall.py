"""Finds and removes what jackline keeps on this machine outside projects. It never removes what it does not recognise.

A name proves nothing: a folder may have had its own `logs` before it became a home. So every file and folder must be
recognised by its content or by the database; everything else stays and is reported.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import extensions
from jackline.app import notes, places, trust, versions
from jackline.app.agents_cache import cache_parts, folder_of_cache
from jackline.app.config import user_file
from jackline.domain import ids
from jackline.domain.events import Event
from jackline.domain.states import RunState
from jackline.errors import JacklineError, Refused, StoreError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jackline.app.home import Home
    from jackline.store.contract import Store

_FOLDERS = ("runs", "logs", "archive", "retros", "imported")
_LOG_FILES = (places.LOG, *(f"{places.LOG}.{number}" for number in (1, 2, 3)))
_NOTE_FILES = {trust.TRUST: "digest", versions.CACHE: "version", versions.CANARIES: "version"}  # a field of each entry
_EMPTY_NOTE_BYTES = 4
_BESIDE_DATABASE = ("-wal", "-shm", "-journal", ".gate")
_ARCHIVE_SUFFIX = ".jsonl.gz"
_READ_LIMIT = 1_000_000


class Leftover(NamedTuple):
    """A file of jackline's, or a folder with the parts of it that are jackline's."""

    path: str
    what: str
    size: int
    parts: tuple[str, ...]  # what is removed


class NotRemoved(JacklineError):
    """{detail} cannot be removed ({why}): fix that and try again, or remove it by hand"""  # noqa: D400 - it is the message


def find_leftovers(home: Home, environ: Mapping[str, str]) -> list[Leftover]:
    """Everything that an uninstall would remove now."""
    _refuse_unreadable(home)
    found = [(path, what, tuple(parts)) for path, what, parts in _scan(home, environ)]
    home.close()  # closing the last connection removes the files beside the database
    existing = [(path, what, tuple(filter(os.path.lexists, parts))) for path, what, parts in found]
    return [Leftover(path, what, sum(map(_measure_size, parts)), parts) for path, what, parts in existing if parts]


def refuse_while_running(home: Home) -> None:
    """Refuse to remove anything while a run is alive."""
    _refuse_unreadable(home)
    run_id = next(_locked_runs(os.path.join(home.path, "runs")), None) or _find_running(home)
    if run_id:
        raise Refused(f"run {run_id} is running: end it with `jackline cancel {run_id}`, then try again")


def remove_leftovers(home: Home, leftovers: Iterable[Leftover], environ: Mapping[str, str]) -> list[str]:
    """Remove them, and the folders that are empty then; the files that stay because they are not jackline's."""
    for leftover in leftovers:
        for part in leftover.parts:
            _remove(part)
            folder = os.path.dirname(part)
            with suppress(OSError):  # not empty: something else is in it
                while len(folder) > len(leftover.path):
                    os.rmdir(folder)
                    folder = os.path.dirname(folder)
    own_folders = (os.path.join(home.path, name) for name in _FOLDERS)
    settings_folder = os.path.dirname(user_file(environ))
    for folder in (*own_folders, home.path, settings_folder, folder_of_cache(environ), places.cache_folder(environ)):
        with suppress(OSError):  # not empty, or never created
            os.rmdir(folder)
    return _list_foreign(home)


def _list_foreign(home: Home) -> list[str]:
    found = [home.database] if _is_local(home) and os.path.lexists(home.database) else []
    for name in sorted(os.listdir(home.path)) if os.path.isdir(home.path) else ():
        path = os.path.join(home.path, name)
        found += _list_folder(path) if name in _FOLDERS and _is_folder(path) else [path]
    return list(dict.fromkeys(found))


# --- what is jackline's


def _scan(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Each place, what it is, and which parts of it are jackline's."""
    if _is_local(home):
        yield home.database, "database", _database_files(home)
    if _is_own_folder(home.path, environ):
        yield from _scan_home(home)
    settings = user_file(environ)
    yield settings, "settings", (settings,) if os.path.lexists(settings) else ()
    yield folder_of_cache(environ), "agents", cache_parts(folder_of_cache(environ))


def _scan_home(home: Home) -> Iterator[tuple[str, str, Iterable[str]]]:
    runs, logs, archive, _, imported = (os.path.join(home.path, name) for name in _FOLDERS)
    known = _KnownIds(home)
    yield runs, "runs", (path for path in _list_folder(runs) if _is_run(path, known))
    yield logs, "links to runs", (path for path in _list_logs(logs) if _is_link_to_run(path))
    yield archive, "archive", (path for path in _list_folder(archive) if _is_archive(path))
    for places_of_feature in extensions.call_hook("home_leftovers", home.path):
        yield from places_of_feature
    # The originals of imported cases that could not be read completely.
    cases = (path for path in _list_folder(imported) if _is_folder(path) and known.has_case(os.path.basename(path)))
    yield imported, "imported files", cases
    for name in (*_LOG_FILES, *_NOTE_FILES):
        path = os.path.join(home.path, name)
        yield path, "home", (path,) if _is_file(path) and (name not in _NOTE_FILES or _is_note(path, name)) else ()


class _KnownIds:
    """The runs and cases in the home's own database. A server is not asked; an unreadable database knows none."""

    def __init__(self, home: Home) -> None:
        self._home: Home | None = home if _has_database(home) else None

    def has_run(self, run_id: str) -> bool:
        return self._has(lambda store: store.run(run_id))

    def has_case(self, case_id: str) -> bool:
        return self._has(lambda store: store.case(case_id))

    def _has(self, read: Callable[[Store], object]) -> bool:
        try:
            return self._home is not None and read(self._home.store()) is not None
        except JacklineError:
            self._home = None
            return False


def _database_files(home: Home) -> Iterator[str]:
    """The database and the files beside it, if it bears jackline's mark; or an empty file under jackline's name."""
    path = home.database
    is_default = path == os.path.join(home.path, places.DATABASE)
    if _has_database(home) or (is_default and (not os.path.lexists(path) or _measure_size(path) == 0)):
        yield from (path + suffix for suffix in ("", *_BESIDE_DATABASE) if os.path.isfile(path + suffix))


def _has_database(home: Home) -> bool:
    """Whether the database is a file of jackline's. SQLite never opens any other file: opening it could write."""
    from jackline.store.sqlite_file import is_marked

    return _is_local(home) and is_marked(home.database)


def _is_local(home: Home) -> bool:
    return "://" not in home.database


def _is_own_folder(home: str, environ: Mapping[str, str]) -> bool:
    """A home that is also the user's HOME, the current folder or a repository keeps every file with a common name."""
    shared = {os.path.realpath(path) for path in ("/", environ.get("HOME") or "/", os.getcwd())}
    return os.path.realpath(home) not in shared and not os.path.exists(os.path.join(home, ".git"))


def _is_run(folder: str, known: _KnownIds) -> bool:
    run_id = os.path.basename(folder)
    return _is_folder(folder) and ids.is_chosen(run_id) and (known.has_run(run_id) or _has_summary(folder))


def _has_summary(folder: str) -> bool:
    """Whether the folder holds the summary of the run that it is named after."""
    path = os.path.join(folder, "metadata.json")
    if not _is_file(path):  # reading a pipe would block
        return False
    try:
        summary = json.loads(_read_start(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(summary, dict) and summary.get("run_id") == os.path.basename(folder)


def _list_logs(folder: str) -> Iterator[str]:
    """The entries of logs/TASK/AGENT."""
    for task in _list_folder(folder):
        for agent in _list_folder(task):
            yield from _list_folder(agent)


def _is_link_to_run(path: str) -> bool:
    target = os.path.join("..", "..", "..", "runs", os.path.basename(path))
    return os.path.islink(path) and os.readlink(path) == target


def _is_archive(path: str) -> bool:
    """Whether the first event of the archive belongs to the run that it is named after."""
    import gzip
    import zlib

    if not path.endswith(_ARCHIVE_SUFFIX) or not _is_file(path):
        return False
    try:
        with gzip.open(path, "rb") as file:
            stream = Event(**json.loads(file.readline(_READ_LIMIT))).stream
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error):
        return False
    return stream == os.path.basename(path).removesuffix(_ARCHIVE_SUFFIX)


def _is_note(path: str, name: str) -> bool:
    entries = notes.read(path).values()
    return all(_NOTE_FILES[name] in one for one in entries) if entries else os.path.getsize(path) <= _EMPTY_NOTE_BYTES


# --- what is running


def _find_running(home: Home) -> str | None:
    """A running run of this home's own database; those of a server may belong to somebody else."""
    from jackline.store.contract import RunQuery

    if not _has_database(home):
        return None
    try:
        rows = home.list_runs(RunQuery(states=(str(RunState.RUNNING),), limit=1))
    except StoreError:  # an unreadable database must not block its own removal
        return None
    return rows[0].id if rows else None


def _locked_runs(runs: str) -> Iterator[str]:
    """The runs whose supervisor holds its lock."""
    from jackline.engine.locks import is_dead

    for run in os.listdir(runs) if os.path.isdir(runs) else ():
        folder = os.path.join(runs, run)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            owner = name.removeprefix("owner-").removesuffix(".lock")
            if name == f"owner-{owner}.lock" and not is_dead(folder, owner):
                yield run


# --- files


def _refuse_unreadable(home: Home) -> None:
    try:
        os.listdir(home.path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreError(f"{home.path} cannot be read: {error.strerror}; check its permissions") from None


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_file(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _list_folder(folder: str) -> list[str]:
    """The paths in a folder; none behind a link, which may lead to somebody else's files."""
    if not _is_folder(folder):
        return []
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _read_start(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(_READ_LIMIT)
    except (OSError, ValueError):
        return ""


def _measure_size(path: str) -> int:
    if not _is_folder(path):
        return os.lstat(path).st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # already gone, or not readable
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


def _remove(path: str) -> None:
    from shutil import rmtree

    try:
        if _is_folder(path):
            rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotRemoved(error.filename or path, why=error.strerror) from None
