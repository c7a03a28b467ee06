"""Which files and folders in a home are jackline's own, by what is in them or by the database. It only looks."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

from jackline.app import dashboard, notes, places, trust, versions
from jackline.domain import ids
from jackline.domain.events import Event
from jackline.errors import JacklineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jackline.app.home import Home
    from jackline.store.contract import Store

RUNS, LOGS, ARCHIVE, RETROS, IMPORTED = "runs", "logs", "archive", "retros", "imported"
FOLDERS = (RUNS, LOGS, ARCHIVE, RETROS, IMPORTED)
_LOG_FILES = (places.LOG, *(f"{places.LOG}.{number}" for number in (1, 2, 3)))
_NOTES = {
    trust.TRUST: "digest",
    versions.CACHE: "version",
    versions.CANARIES: "version",
}  # each with a word that every entry has
_DASHBOARD = (dashboard.NAME, dashboard.LOCK, f"{dashboard.LOCK}.next")
_ARCHIVED = ".jsonl.gz"
_PLOT = re.compile(r"[0-9]{4}-W[0-9]{2}-[a-z]+\.svg")
_LONGEST = 1_000_000
_EMPTY = 4  # bytes of a note without entries


def of(home: Home) -> Iterator[tuple[str, str, Iterator[str]]]:
    """Each place in the home, what it is, and what of it is ours."""
    known = _Known(home)
    yield os.path.join(home.path, RUNS), "runs", _runs(os.path.join(home.path, RUNS), known)
    yield os.path.join(home.path, LOGS), "links to runs", _links(os.path.join(home.path, LOGS))
    yield os.path.join(home.path, ARCHIVE), "archive", _archives(os.path.join(home.path, ARCHIVE))
    yield os.path.join(home.path, RETROS), "retros", _retros(os.path.join(home.path, RETROS))
    yield os.path.join(home.path, IMPORTED), "imported files", _imported(os.path.join(home.path, IMPORTED), known)
    for name in (*_LOG_FILES, *_NOTES, *_DASHBOARD):
        path = os.path.join(home.path, name)
        yield path, "home", iter((path,) if _is_plain(path) and _is_ours(path, name) else ())


def has_database(home: Home) -> bool:
    """Whether the home's database is a file of ours; any other file is not even opened by SQLite, which would write."""
    from jackline.store.sqlite_file import is_marked

    return "://" not in home.database and is_marked(home.database)


class _Known:
    """Which runs and cases the home's own database has; a server is not asked, and one that cannot be read has none."""

    def __init__(self, home: Home) -> None:
        self._home: Home | None = home if has_database(home) else None

    def run(self, name: str) -> bool:
        return self._has(lambda store: store.run(name))

    def case(self, name: str) -> bool:
        return self._has(lambda store: store.case(name))

    def _has(self, look: Callable[[Store], object]) -> bool:
        try:
            return self._home is not None and look(self._home.store()) is not None
        except JacklineError:
            self._home = None
            return False


def _runs(folder: str, known: _Known) -> Iterator[str]:
    for path in _entries(folder):
        run = os.path.basename(path)
        if _is_folder(path) and ids.is_chosen(run) and (known.run(run) or _tells_of(path, run)):
            yield path


def _imported(folder: str, known: _Known) -> Iterator[str]:
    """What cases were read from that could not be read as a whole."""
    return (path for path in _entries(folder) if _is_folder(path) and known.case(os.path.basename(path)))


def _tells_of(folder: str, run: str) -> bool:
    """Whether the folder has the summary of the run that it is named after."""
    path = os.path.join(folder, "metadata.json")
    if not _is_plain(path):  # a pipe would be waited for
        return False
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("run_id") == run


def _links(folder: str) -> Iterator[str]:
    """Of logs/TASK/AGENT/RUN only the links that lead to the run."""
    for task in _entries(folder):
        for agent in _entries(task):
            for path in _entries(agent):
                run = os.path.basename(path)
                if os.path.islink(path) and os.readlink(path) == os.path.join("..", "..", "..", RUNS, run):
                    yield path


def _archives(folder: str) -> Iterator[str]:
    for path in _entries(folder):
        run = os.path.basename(path).removesuffix(_ARCHIVED)
        if path.endswith(_ARCHIVED) and _is_plain(path) and _first_stream(path) == run:
            yield path


def _retros(folder: str) -> Iterator[str]:
    """Plots, and texts that no person has written into."""
    from jackline.domain.retro.keeping import is_untouched

    for path in _entries(folder):
        name = os.path.basename(path)
        week = name.removesuffix(".md").removesuffix(".new")
        if _is_plain(path) and (_PLOT.fullmatch(name) or is_untouched(f"Retro {week}", _beginning(path))):
            yield path


def _beginning(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(_LONGEST)
    except (OSError, ValueError):
        return ""


def _first_stream(path: str) -> str:
    """Whose the first event in an archive is; empty if that is none."""
    import gzip
    import zlib

    try:
        with gzip.open(path, "rb") as file:
            return Event(**json.loads(file.readline(_LONGEST))).stream
    except (OSError, EOFError, ValueError, TypeError, RecursionError, zlib.error):
        return ""


def _is_ours(path: str, name: str) -> bool:
    if name not in _NOTES:
        return True
    entries = notes.read(path).values()
    return all(_NOTES[name] in entry for entry in entries) if entries else os.path.getsize(path) <= _EMPTY


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_plain(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path)


def _entries(folder: str) -> list[str]:
    """What is in a folder; nothing behind a link, which leads to somebody else's."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []
