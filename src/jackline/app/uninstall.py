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
from jackline.app import agent_versions, paths, state_files, trust
from jackline.app.agent_versions import find_cache_folder, list_cache_files
from jackline.app.config import find_user_file
from jackline.domain import ids
from jackline.domain.states import RunState
from jackline.errors import JacklineError, Refused, StoreError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jackline.app.home import Home
    from jackline.store.store import Store

_PLAIN_FILES = (paths.LOG_FILE, *(f"{paths.LOG_FILE}.{number}" for number in (1, 2, 3)))
_NOTE_FIELDS = {
    trust.TRUST_FILE: "digest",
    agent_versions.CACHE: "version",
    agent_versions.CANARIES: "version",
}  # a field of each entry
_EMPTY_NOTE_BYTES = 4
_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".gate")
_READ_LIMIT = 1_000_000


class UninstallItem(NamedTuple):
    """A file of jackline's, or a folder with the parts of it that are jackline's."""

    path: str
    what: str
    size: int
    parts: tuple[str, ...]  # these are removed


class NotRemoved(JacklineError):
    """{detail} cannot be removed ({why}): fix that and try again, or remove it by hand"""  # noqa: D400 - it is the message


def find_leftovers(home: Home, environ: Mapping[str, str]) -> list[UninstallItem]:
    """Find everything that an uninstall would remove now."""
    _refuse_unreadable(home)
    found = [(path, what, tuple(parts)) for path, what, parts in _scan(home, environ)]
    home.close()  # closing the last connection removes the files beside the database
    existing = [(path, what, tuple(filter(os.path.lexists, parts))) for path, what, parts in found]
    return [
        UninstallItem(path=path, what=what, size=sum(map(_measure_size, parts)), parts=parts)
        for path, what, parts in existing
        if parts
    ]


def refuse_while_running(home: Home) -> None:
    """Refuse to remove anything while a run is alive: one that is locked, or that this home's own database knows."""
    from jackline.engine.owner_lock import is_owner_dead
    from jackline.store.models import RunQuery

    _refuse_unreadable(home)
    running: list[str] = []
    with suppress(StoreError):  # an unreadable database must not block its own removal
        if _has_database(home):
            running += [row.id for row in home.list_runs(RunQuery(states=(str(RunState.RUNNING),), limit=1))]
    for folder in _list_folder(os.path.join(home.path, "runs")):
        for name in map(os.path.basename, _list_folder(folder)):
            owner = name.removeprefix("owner-").removesuffix(".lock")
            if name == f"owner-{owner}.lock" and not is_owner_dead(folder, owner):
                running.append(os.path.basename(folder))
    if running:
        raise Refused(f"run {running[0]} is running: end it with `jackline cancel {running[0]}`, then try again")


def remove_leftovers(home: Home, leftovers: Iterable[UninstallItem], environ: Mapping[str, str]) -> list[str]:
    """Remove them, and the folders that are empty then; returns the paths that stay because they are not jackline's."""
    for leftover in leftovers:
        for part in leftover.parts:
            _remove(part)
            folder = os.path.dirname(part)
            with suppress(OSError):  # not empty: something else is in it
                while len(folder) > len(leftover.path):
                    os.rmdir(folder)
                    folder = os.path.dirname(folder)
    own_folders = [os.path.join(home.path, name) for name in _RECOGNISERS]
    settings_folder = os.path.dirname(find_user_file(environ))
    for folder in (
        *own_folders,
        home.path,
        settings_folder,
        find_cache_folder(environ),
        paths.find_cache_folder(environ),
    ):
        with suppress(OSError):  # not empty, or never created
            os.rmdir(folder)
    foreign = [home.database] if "://" not in home.database and os.path.lexists(home.database) else []
    for name in sorted(os.listdir(home.path)) if os.path.isdir(home.path) else ():
        path = os.path.join(home.path, name)
        foreign += _list_folder(path) if name in _RECOGNISERS and _is_folder(path) else [path]
    return list(dict.fromkeys(foreign))


# --- recognising


def _scan(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Each place, what it is, and which parts of it are jackline's."""
    path, default = home.database, os.path.join(home.path, paths.DATABASE_FILE)
    if _has_database(home) or (path == default and (not os.path.lexists(path) or _measure_size(path) == 0)):
        yield path, "database", filter(os.path.isfile, (path + suffix for suffix in _DATABASE_SUFFIXES))
    # A home that is also the user's HOME, the current folder or a repository keeps every file with a common name.
    shared = {os.path.realpath(folder) for folder in ("/", environ.get("HOME") or "/", os.getcwd())}
    if os.path.realpath(home.path) not in shared and not os.path.exists(os.path.join(home.path, ".git")):
        yield from _scan_home(home)
    yield find_user_file(environ), "settings", (find_user_file(environ),)
    yield find_cache_folder(environ), "agents", list_cache_files(find_cache_folder(environ))


def _scan_home(home: Home) -> Iterator[tuple[str, str, Iterable[str]]]:
    for folder, (what, is_own) in _RECOGNISERS.items():
        root = os.path.join(home.path, folder)
        depth = 3 if folder == "logs" else 1  # logs/TASK/AGENT/RUN
        yield root, what, (path for path in _list_folder(root, depth) if is_own(home, path))
    for leftovers in extensions.call_hook("home_leftovers", home):
        yield from leftovers
    for name in (*_PLAIN_FILES, *_NOTE_FIELDS):
        path = os.path.join(home.path, name)
        yield path, "home", (path,) if _is_file(path) and (name in _PLAIN_FILES or _is_note(path)) else ()


def _has_database(home: Home) -> bool:
    """Whether the database is a file of jackline's. SQLite never opens any other file: opening it could write."""
    from jackline.store.sqlite_file import is_marked

    return "://" not in home.database and is_marked(home.database)


def _is_stored(home: Home, read: Callable[[Store], object]) -> bool:
    """Whether the home's own database has a record. A server is not asked; an unreadable database has none."""
    try:
        return _has_database(home) and read(home.store()) is not None
    except JacklineError:
        return False


def _has_run(home: Home, run_id: str) -> bool:
    """Whether the database has the run, or its folder holds its summary."""
    if not ids.is_chosen(run_id):
        return False
    try:
        summary = json.loads(_read_start(os.path.join(home.path, "runs", run_id, "metadata.json")))
    except (ValueError, RecursionError):
        summary = None
    is_summary = isinstance(summary, dict) and summary.get("run_id") == run_id
    return is_summary or _is_stored(home, lambda store: store.runs.get(run_id))


def _is_run(home: Home, path: str) -> bool:
    return _is_folder(path) and _has_run(home, os.path.basename(path))


def _is_archive(home: Home, path: str) -> bool:
    run_id, suffix, rest = os.path.basename(path).partition(".jsonl.gz")
    return bool(suffix) and not rest and _is_file(path) and _has_run(home, run_id)


def _is_link_to_run(_home: Home, path: str) -> bool:
    target = os.path.join("..", "..", "..", "runs", os.path.basename(path))
    return os.path.islink(path) and os.readlink(path) == target


def _is_note(path: str) -> bool:
    entries, field = state_files.read_entries(path).values(), _NOTE_FIELDS[os.path.basename(path)]
    return all(field in entry for entry in entries) if entries else os.path.getsize(path) <= _EMPTY_NOTE_BYTES


_RECOGNISERS: dict[str, tuple[str, Callable[[Home, str], bool]]] = {
    "runs": ("runs", _is_run),
    "logs": ("links to runs", _is_link_to_run),
    "archive": ("archive", _is_archive),
}


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


def _list_folder(folder: str, depth: int = 1) -> list[str]:
    """The paths in a folder, or `depth` levels below; none behind a link, which may lead to foreign files."""
    entries = []
    with suppress(OSError):
        entries = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if _is_folder(folder) else []
    return entries if depth == 1 else [path for entry in entries for path in _list_folder(entry, depth - 1)]


def _read_start(path: str) -> str:
    with suppress(OSError, ValueError):
        if _is_file(path):  # reading a pipe would block
            with open(path, encoding="utf-8", newline="") as file:
                return file.read(_READ_LIMIT)
    return ""


def _measure_size(path: str) -> int:
    if not _is_folder(path):
        return os.lstat(path).st_size
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in files if os.path.lexists(file))


def _remove(path: str) -> None:
    from shutil import rmtree

    try:
        (rmtree if _is_folder(path) else os.unlink)(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotRemoved(error.filename or path, why=error.strerror) from None
