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
from jackline.app import agent_versions, own_files, paths, state_files, trust
from jackline.app.config import find_user_file
from jackline.app.text_files import TEXT_LIMIT, read_regular_text
from jackline.domain import ids
from jackline.domain.states import RunState
from jackline.errors import JacklineError, Refused, StoreError
from jackline.exports.task_log import is_task_log
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.app.home import Home

_RUN_FOLDERS = {"runs": "runs", "logs": "links to runs", "archive": "archive"}
_LOG_FILES = (paths.LOG_FILE, *(f"{paths.LOG_FILE}.{number}" for number in (1, 2, 3)))
# State files, each with a field that all its entries have.
_STATE_FIELDS = {
    trust.TRUST_FILE: "digest",
    own_files.PLACES_FILE: "place",
    agent_versions.CACHE: "version",
    agent_versions.CANARIES: "version",
}
_EMPTY_STATE_BYTES = 4
_DATABASE_SUFFIXES = ("", "-wal", "-shm", "-journal", ".gate")


class UninstallItem(NamedTuple):
    """A file of jackline's, or a folder with the parts of it that are jackline's."""

    path: str
    what: str
    size: int
    parts: tuple[str, ...]  # these are removed


class NotRemoved(JacklineError):
    """{detail} cannot be removed ({why}): fix that and try again, or remove it by hand"""  # noqa: D400 - it is the message


def refuse_while_running(home: Home) -> None:
    """Refuse to remove anything while a service is alive, or a run: locked, or known by this home's own database."""
    from jackline.engine.owner_lock import is_owner_dead
    from jackline.store.models import RunQuery

    for service in filter(None, extensions.call_hook("living_service", home)):
        raise Refused(f"a service is running, process {service.pid}: stop it, or `jackline service remove`; try again")
    running: list[str] = []
    with suppress(StoreError):  # an unreadable database must not block its own removal
        if _has_database(home):
            running += [row.id for row in home.list_runs(RunQuery(states=(str(RunState.RUNNING),), limit=1))]
    for folder, name in map(os.path.split, _list_folder(os.path.join(home.path, "runs"), depth=2)):
        owner = name.removeprefix("owner-").removesuffix(".lock")
        if name == f"owner-{owner}.lock" and not is_owner_dead(folder, owner):
            running.append(os.path.basename(folder))
    if running:
        raise Refused(f"run {running[0]} is running: end it with `jackline cancel {running[0]}`, then try again")


def find_leftovers(home: Home, environ: Mapping[str, str]) -> list[UninstallItem]:
    """Find everything that an uninstall would remove now."""
    try:
        os.listdir(home.path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise StoreError(f"{home.path} cannot be read: {error.strerror}; check its permissions") from None
    found = [(path, what, tuple(parts)) for path, what, parts in _scan(home, environ)]
    home.close()  # closing the last connection removes the files beside the database
    existing = [(path, what, tuple(filter(os.path.lexists, parts))) for path, what, parts in found]
    return [UninstallItem(path, what, sum(map(_measure_size, parts)), parts) for path, what, parts in existing if parts]


def remove_leftovers(home: Home, leftovers: Iterable[UninstallItem], environ: Mapping[str, str]) -> list[str]:
    """Remove them, and the folders that are empty then; returns the paths that stay because they are not jackline's."""
    from shutil import rmtree

    for leftover in leftovers:
        for part in leftover.parts:
            try:
                (rmtree if _is_folder(part) else os.unlink)(part)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise NotRemoved(error.filename or part, why=error.strerror) from None
            folder = os.path.dirname(part)
            with suppress(OSError):  # not empty: something else is in it
                while len(folder) > len(leftover.path):
                    os.rmdir(folder)
                    folder = os.path.dirname(folder)
    caches = (agent_versions.find_cache_folder(environ), paths.find_cache_folder(environ))
    own_folders = (os.path.join(home.path, name) for name in _RUN_FOLDERS)
    for folder in (*own_folders, home.path, os.path.dirname(find_user_file(environ)), *caches):
        with suppress(OSError):  # not empty, or never created
            os.rmdir(folder)
    foreign = [home.database] if not home.has_database_server and os.path.lexists(home.database) else []
    for name in sorted(os.listdir(home.path)) if os.path.isdir(home.path) else ():
        path = os.path.join(home.path, name)
        foreign += _list_folder(path) if name in _RUN_FOLDERS and _is_folder(path) else [path]
    return list(dict.fromkeys(foreign))


def _scan(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str, Iterable[str]]]:
    """Yield each place, what it is, and which parts of it are jackline's."""
    path, default = home.database, os.path.join(home.path, paths.DATABASE_FILE)
    if _has_database(home) or (path == default and (not os.path.lexists(path) or _measure_size(path) == 0)):
        yield path, "database", filter(os.path.isfile, (path + suffix for suffix in _DATABASE_SUFFIXES))
    # A home that is also the user's HOME, the current folder or a repository keeps every file with a common name.
    shared = {os.path.realpath(folder) for folder in ("/", environ.get("HOME") or "/", os.getcwd())}
    if os.path.realpath(home.path) not in shared and not os.path.exists(os.path.join(home.path, ".git")):
        for folder, what in _RUN_FOLDERS.items():
            root = os.path.join(home.path, folder)
            entries = _list_folder(root, depth=3 if folder == "logs" else 1)  # logs/TASK/AGENT/RUN
            yield root, what, [entry for entry in entries if _belongs_to_run(home, folder, entry)]
        logs = os.path.join(home.path, "logs")
        yield logs, "task logs", [entry for entry in _list_folder(logs, depth=2) if is_task_log(entry)]
        for leftovers in extensions.call_hook("home_leftovers", home):
            yield from leftovers
        for name in (*_LOG_FILES, *_STATE_FIELDS):
            path = os.path.join(home.path, name)
            yield path, "home", (path,) if _is_file(path) and (name in _LOG_FILES or _is_state_file(path)) else ()
    yield find_user_file(environ), "settings", (find_user_file(environ),)
    cache = agent_versions.find_cache_folder(environ)
    yield cache, "agents", agent_versions.list_cache_files(cache)


def _has_database(home: Home) -> bool:
    """Whether the database is a file of jackline's. SQLite never opens any other file: opening it could write."""
    from jackline.store.sqlite_file import is_marked

    return not home.has_database_server and is_marked(home.database)


def _belongs_to_run(home: Home, folder: str, path: str) -> bool:
    """Whether it is a link to a run; or the folder or archive of one that has a summary or is in the database."""
    name = os.path.basename(path)
    if folder == "logs":
        return os.path.islink(path) and os.readlink(path) == os.path.join("..", "..", "..", "runs", name)
    run_id = name.removesuffix(".jsonl.gz") if folder == "archive" else name
    is_expected = _is_file(path) and run_id != name if folder == "archive" else _is_folder(path)
    if not is_expected or not ids.is_chosen(run_id):
        return False
    summary = os.path.join(home.path, "runs", run_id, "metadata.json")
    with suppress(JacklineError, ValueError, RecursionError):
        found = json.loads(read_regular_text(summary, TEXT_LIMIT)) if _is_file(summary) else None
        if isinstance(found, dict) and found.get("run_id") == run_id:
            return True
    with suppress(JacklineError):  # a server is not asked, and an unreadable database has no run
        return _has_database(home) and home.store().runs.get(run_id) is not None
    return False


def _is_state_file(path: str) -> bool:
    entries, field = state_files.read_entries(path).values(), _STATE_FIELDS[os.path.basename(path)]
    return all(field in entry for entry in entries) if entries else os.path.getsize(path) <= _EMPTY_STATE_BYTES


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


def _measure_size(path: str) -> int:
    if not _is_folder(path):
        return os.lstat(path).st_size
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sum(os.lstat(file).st_size for file in files if os.path.lexists(file))
