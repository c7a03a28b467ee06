"""Finds importable data by its shape, in a bounded walk that follows no link."""

from __future__ import annotations

import os
import re
import sqlite3
from typing import TYPE_CHECKING, Any

from jackline.features.importers import databases, source_files
from jackline.features.importers.import_records import (
    AGENT_RUNNER,
    AGENT_STATE,
    AGENTPAIR,
    NOTEBOOK,
    UNIVERSAL_AGENT,
    Source,
)
from jackline.features.importers.source_files import SourceUnreadable
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.features.importers.databases import SourceDatabase
    from jackline.features.importers.import_records import Troubles

_DEEPEST = 16
_MOST_ENTRIES = 1_000_000
_SKIPPED = frozenset({".git", ".hg", "node_modules", ".venv", "venv", "__pycache__", ".tox", "site-packages"})
_DATABASES = (".sqlite", ".sqlite3", ".db")
_KNOWN_DATABASES = {"state.sqlite": AGENT_STATE, "runtime_state.db": UNIVERSAL_AGENT}
_NOTES = frozenset({"hypotheses.jsonl", "evidence.jsonl", "commands.jsonl", "learning.jsonl"})
_RUNNER_FILES = frozenset({"transcript.log", "stdout.log", "stderr.log", "runner.log", "summary.txt"})
_PAIR_FILES = frozenset({"transcript.jsonl", "bridge.jsonl"})
_REPOSITORY = re.compile(r"[0-9a-f]{16}")
_FOLDER_FILES = (
    _NOTES | _RUNNER_FILES | _PAIR_FILES | {"problem.json", "manifest.json", "metadata.json", "closeout.json"}
)
_NO_TABLES = "it has none of the tables of agent-state or universal_agent"


class _Folder(NamedTuple):
    """A folder and its files; `named` if a person gave its path."""

    path: str
    names: frozenset[str]
    named: bool = False

    def above(self, steps: int) -> str:
        parts = self.path.split(os.sep)
        return parts[-1 - steps] if steps < len(parts) else ""

    def read(self, name: str) -> dict[str, Any]:
        """The object in one of its files; empty if there is none that can be read."""
        try:
            return source_files.read_object(os.path.join(self.path, name)) if name in self.names else {}
        except (OSError, SourceUnreadable):
            return {}


class SourceFinder:
    """Walks paths and recognizes sources."""

    def __init__(self, troubles: Troubles, wanted: str | None = None) -> None:
        """With a `wanted` kind only that kind is searched, and the checks are less strict."""
        self._troubles, self._wanted = troubles, wanted
        self.own = 0  # skipped folders of jackline's own runs
        self._entries = 0

    def find_sources(self, path: str) -> Iterator[Source]:
        """Yield the sources at a path that a person gave."""
        path = os.path.realpath(path)
        if os.path.isdir(path):
            yield from self._walk(path)
        elif os.path.basename(path) in _FOLDER_FILES:
            yield from self._match_folder(_read_folder(os.path.dirname(path), named=True))
        elif os.path.isfile(path):  # nothing else is even opened
            yield from self._match_database(path, named=True)

    def _walk(self, start: str) -> Iterator[Source]:
        waiting = [(start, 0)]
        while waiting:
            path, depth = waiting.pop()
            try:
                below, plain = self._scan(path)
            except OSError as error:
                self._troubles.add(path, "", error.strerror)
                continue
            found = [*self._match_folder(_Folder(path=path, names=frozenset(plain), named=depth == 0))]
            yield from found
            if found or self._is_own(_Folder(path=path, names=frozenset(plain))):
                continue
            for name in sorted(plain):
                if name.endswith(_DATABASES):
                    yield from self._match_database(os.path.join(path, name), named=False)
            if depth == _DEEPEST and below:
                self._troubles.add(path, "", "deeper folders were not searched: name the folder itself")
            elif self._entries > _MOST_ENTRIES:
                self._troubles.add(path, "", "there are too many files here: name a smaller folder")
                return
            else:
                waiting += [(os.path.join(path, name), depth + 1) for name in sorted(below, reverse=True)]

    def _scan(self, path: str) -> tuple[list[str], list[str]]:
        below, plain = [], []
        with os.scandir(path) as entries:
            for entry in entries:
                self._entries += 1
                if entry.is_dir(follow_symlinks=False):
                    below += [entry.name] if entry.name not in _SKIPPED else []
                elif entry.is_file(follow_symlinks=False):
                    plain.append(entry.name)
        return below, plain

    def _is_own(self, folder: _Folder) -> bool:
        """A run of jackline itself has the same files and must not be imported."""
        metadata = folder.read("manifest.json").get("metadata")
        own = isinstance(metadata, dict) and "jackline_state" in metadata
        self.own += own
        return own

    # folders

    def _match_folder(self, folder: _Folder) -> Iterator[Source]:
        for kind, fits in ((NOTEBOOK, _is_case), (AGENTPAIR, _is_pair), (AGENT_RUNNER, _is_runner)):
            if self._wanted not in {None, kind}:
                continue
            if fits(folder, sure=folder.named and self._wanted == kind) and not self._is_own(folder):
                yield Source(kind, folder.path)
                return

    # databases

    def _match_database(self, path: str, *, named: bool) -> Iterator[Source]:
        theirs = _KNOWN_DATABASES.get(os.path.basename(path))
        if not named and theirs is None and databases.has_log(path):
            return  # a process may be using it: only a named file is opened
        try:
            with databases.open_database(path) as database:
                kind = _find_kind(database)
        except OSError as error:
            self._report(path, error.strerror, worth_reporting=named or theirs is not None)
        except (SourceUnreadable, sqlite3.Error) as error:
            worth_reporting = (named and self._wanted in _KNOWN_DATABASES.values()) or (
                not named and theirs is not None
            )
            self._report(path, error, worth_reporting=worth_reporting)
        else:
            if kind is not None and self._wanted in {None, kind}:
                yield Source(kind, path)
            elif named and self._wanted is not None:
                self._report(path, _NO_TABLES, worth_reporting=True)

    def _report(self, path: str, reason: object, *, worth_reporting: bool) -> None:
        """Report a problem, unless the database belongs to an unrelated program."""
        if worth_reporting and self._wanted in {None, *_KNOWN_DATABASES.values()}:
            self._troubles.add(path, "", reason)


def _read_folder(path: str, *, named: bool) -> _Folder:
    try:
        with os.scandir(path) as entries:
            names = frozenset(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except OSError:
        names = frozenset()
    return _Folder(path=path, names=names, named=named)


def _find_kind(database: SourceDatabase) -> str | None:
    if database.has("work_items", "id", "kind", "status"):
        return AGENT_STATE
    if database.has("events", "ts", "type") and "work_items" not in database.tables:
        return AGENT_STATE
    of_runs = {"tool_calls", "run_steps", "run_attempts", "checkpoints", "tool_receipts"} & set(database.tables)
    return UNIVERSAL_AGENT if database.has("runs", "run_id") and of_runs else None


def _is_case(folder: _Folder, *, sure: bool) -> bool:
    notes = folder.names & _NOTES
    if "problem.json" not in folder.names:
        return len(notes) > 1 or bool(sure and notes)
    capsule = folder.read("problem.json")
    place = (folder.above(2), folder.above(1)) == (".agents", "runs")
    return sure or place or bool(notes) or ("request" in capsule and "created_at" in capsule)


def _is_pair(folder: _Folder, *, sure: bool) -> bool:
    numbered = folder.above(0).isdigit()
    if "manifest.json" not in folder.names:
        return bool(folder.names & _PAIR_FILES) and numbered and _REPOSITORY.fullmatch(folder.above(1)) is not None
    manifest = folder.read("manifest.json")
    is_complete = isinstance(manifest.get("id"), int) and bool(
        {"repo_id", "repo_path", "primary_agent"} & manifest.keys()
    )
    return is_complete or sure or (not manifest and numbered and bool(folder.names & _PAIR_FILES))


def _is_runner(folder: _Folder, *, sure: bool) -> bool:
    has_logs = bool(folder.names & _RUNNER_FILES)
    metadata = folder.read("metadata.json")
    is_complete = {"run_id", "agent", "task"} <= metadata.keys() and "jackline_state" not in metadata
    in_logs = folder.above(3) == "logs" and (has_logs or "metadata.json" in folder.names)
    return is_complete or in_logs or (sure and has_logs)
