"""Imports sources: stores everything that their readers find, once, and yields a record of each. It prints nothing.

Raw files are copied with secrets redacted; databases are never copied.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import IO, TYPE_CHECKING

from jackline import clock
from jackline.app import identity
from jackline.errors import JacklineError, UsageError
from jackline.features.cases.case_queries import Cases
from jackline.features.importers import import_records, source_files
from jackline.features.importers.import_records import (
    AGENT_RUNNER,
    AGENT_STATE,
    AGENTPAIR,
    NOTEBOOK,
    UNIVERSAL_AGENT,
    FoundCase,
    FoundEvents,
    FoundItem,
    FoundRun,
    Troubles,
)
from jackline.features.importers.import_store import Imports
from jackline.features.importers.imported_records import ImportResult
from jackline.features.importers.source_files import SourceUnreadable
from jackline.features.importers.sources import SourceFinder
from jackline.files import link_file, make_private_folder, write_pieces
from jackline.named import NamedTuple
from jackline.secrets.masking import SecretMask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jackline.app.home import Home
    from jackline.features.importers.import_records import Found, Source, SourceFile
    from jackline.store.store import Store

FOLDER, TURNS = "imported", "turns"
MOST_RAW = 1 << 30  # bytes of one file
_CHUNK = 1 << 18
_READERS = {
    AGENT_STATE: "jackline.features.importers.agent_state",
    NOTEBOOK: "jackline.features.importers.notebook",
    AGENTPAIR: "jackline.features.importers.agentpair",
    AGENT_RUNNER: "jackline.features.importers.agent_runner",
    UNIVERSAL_AGENT: "jackline.features.importers.universal_agent",
}
RUN, ITEM, CASE, EVENTS = "run", "item", "case", "events"
UNREADABLE, NOTED = "unreadable", "noted"
_TAKEN = "another record has this id: it was left unchanged"


class ImportRecord(NamedTuple):
    """One imported thing, or one problem."""

    outcome: str
    kind: str  # of the source
    path: str
    what: str = ""
    id: str = ""
    number: int = 1  # of things
    place: str = ""
    reason: str = ""


def import_paths(
    home: Home, paths: Sequence[str], wanted: str | None = None, *, dry_run: bool = False
) -> Iterator[ImportRecord]:
    """Import everything at these paths; UsageError, before anything is written, if there is nothing at one of them."""
    troubles = Troubles()
    sources = _find_sources(paths, wanted, troubles)
    yield from _take_troubles(troubles, "")
    importer = _Importer(home, troubles, dry_run=dry_run)
    for source in sources:
        yield from importer.import_source(source)
        yield from _take_troubles(troubles, source.kind)
    importer.finish()


def _find_sources(paths: Sequence[str], wanted: str | None, troubles: Troubles) -> list[Source]:
    finder = SourceFinder(troubles, wanted)
    sources: dict[Source, None] = {}
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist: name a file or folder of an older tool")
        before, own = troubles.count, finder.own
        here = list(finder.find_sources(path))
        if not here and troubles.count == before:
            if finder.own > own:
                raise UsageError(f"{path} holds runs of jackline itself, which are already in its database")
            what = f"no data of {wanted}" if wanted else "nothing that can be imported"
            raise UsageError(f"{path} holds {what}: see `jackline import --help` for what is recognised")
        sources |= dict.fromkeys(here)
    return list(sources)


def _take_troubles(troubles: Troubles, kind: str) -> Iterator[ImportRecord]:
    for one in troubles.take():
        outcome = NOTED if one.is_note else UNREADABLE
        yield ImportRecord(outcome=outcome, kind=kind, path=one.path, place=one.place, reason=one.reason)


class _Importer:
    """Stores the data of the readers."""

    def __init__(self, home: Home, troubles: Troubles, *, dry_run: bool) -> None:
        self._home, self._troubles, self._dry_run = home, troubles, dry_run
        self._actor = identity.read_actor(os.environ)
        self._changed = False

    def import_source(self, source: Source) -> Iterator[ImportRecord]:
        """Import one source."""
        before = self._troubles.count
        for found in import_module(_READERS[source.kind]).read(source, self._troubles):
            kept = import_records.limit_times(found, clock.wall_ms())
            if kept is not found:
                reason = "it has times in the future: they were set to now"
                self._troubles.note(source.path, _describe_found(found), reason)
            record = self._write(source, kept, whole=self._troubles.count == before)
            self._changed = self._changed or record.outcome == ImportResult.IMPORTED
            yield record

    def finish(self) -> None:
        """Update the dashboard."""
        if self._changed and not self._dry_run:
            self._home.notify_change()

    def _open_store(self) -> Store | None:
        """The store; None in a dry run without a home."""
        if self._dry_run and self._home.is_new:
            return None
        return self._home.store(create=not self._dry_run)

    def _write(self, source: Source, found: Found, *, whole: bool) -> ImportRecord:
        match found:
            case FoundItem():
                return self._import_item(source, found)
            case FoundCase():
                return self._import_case(source, found, whole=whole)
            case FoundEvents():
                return self._import_events(source, found)
            case FoundRun():
                return self._import_run(source, found)

    def _import_item(self, source: Source, found: FoundItem) -> ImportRecord:
        store, at = self._open_store(), clock.wall_ms()
        result = ImportResult.IMPORTED
        if store is not None:
            result = Imports(store).import_item(found.item, found.events, at, self._actor, rehearse=self._dry_run)
        return _build_record(result, source, ITEM, found.item.id)

    def _import_events(self, source: Source, found: FoundEvents) -> ImportRecord:
        store = self._open_store()
        count = len(found.events)
        new = (
            count if store is None else Imports(store).import_events(found.stream, found.events, rehearse=self._dry_run)
        )
        result = ImportResult.IMPORTED if new else ImportResult.ALREADY
        return _build_record(result, source, EVENTS, found.stream)._replace(number=new or count)

    def _import_case(self, source: Source, found: FoundCase, *, whole: bool) -> ImportRecord:
        store = self._open_store()
        if store is None:
            return _build_record(ImportResult.IMPORTED, source, CASE, found.case.id)
        result, case = ImportResult.TAKEN, found.case
        for case_id in (found.case.id, found.other_id):
            case = found.case._replace(id=case_id)
            result = Imports(store).import_case(case, found.entries, 0, self._actor, rehearse=True)
            if result is not ImportResult.TAKEN:
                break
        if result is ImportResult.IMPORTED and not self._dry_run:
            if not whole and found.files:  # keep the originals of unreadable parts: the folder will be overwritten
                folder = os.path.join(self._home.path, FOLDER, case.id)
                keep_files(folder, found.files, store.redactor.values, Troubles())  # their problems were reported
            result = Imports(store).import_case(case, found.entries, clock.wall_ms(), self._actor)
        return _build_record(result, source, CASE, case.id)

    def _import_run(self, source: Source, found: FoundRun) -> ImportRecord:
        store = self._open_store()
        for run_id in (found.run.id, found.other_id):
            found = found._replace(run=found.run._replace(id=run_id))
            result = (
                ImportResult.IMPORTED
                if store is None
                else Imports(store).import_run(found.run, 0, self._actor, rehearse=True)
            )
            if result is not ImportResult.TAKEN:
                break
        else:
            return _build_record(ImportResult.TAKEN, source, RUN, found.run.id)
        if store is not None and not self._dry_run:
            result = self._write_run(store, found, result)
        return _build_record(result, source, RUN, found.run.id)

    def _write_run(self, store: Store, found: FoundRun, result: ImportResult) -> ImportResult:
        """Write the files first, so that every run in the database has them; a failed export is only a warning."""
        run_id = found.run.id
        folder = self._home.folder(run_id)
        if result is ImportResult.IMPORTED:
            keep_run_files(folder, found, store.redactor.values, self._troubles)
            result = Imports(store).import_run(found.run, clock.wall_ms(), self._actor)
        elif os.path.exists(os.path.join(folder, "manifest.json")) or not os.path.isdir(folder):
            return result  # the files are here, or on another host
        run = store.runs.get(run_id)
        try:
            if run is not None:
                self._home.export(run)
        except JacklineError as error:
            self._home.warnings.append(f"{error}; `jackline export {run_id}` writes the files again")
        return result


def _describe_found(found: Found) -> str:
    match found:
        case FoundItem():
            return f"item {found.item.id}"
        case FoundCase():
            return f"case {found.case.id}"
        case FoundEvents():
            return "events of no item"
        case FoundRun():
            return f"run {found.run.id}"


def _build_record(result: ImportResult, source: Source, what: str, name: str) -> ImportRecord:
    return ImportRecord(
        outcome=str(result),
        kind=source.kind,
        path=source.path,
        what=what,
        id=name,
        reason=_TAKEN if result is ImportResult.TAKEN else "",
    )


# files


def keep_run_files(folder: str, found: FoundRun, secrets: Iterable[str], troubles: Troubles) -> None:
    """Write all files of a run; an unreadable source is reported."""
    known = tuple(secrets)
    kept, turns = os.path.join(folder, FOLDER), os.path.join(folder, TURNS)
    keep_files(kept, found.files, known, troubles)
    make_private_folder(turns)
    for raw in found.files:
        path, turn = os.path.join(kept, raw.name), os.path.join(turns, raw.turn)
        if raw.turn and os.path.exists(path) and not link_file(path, turn):
            with _open_source(path) as copy:
                write_pieces(turn, _read_chunks(copy))
    for name, text in found.said:
        said = (text.encode("utf-8", "replace"),)
        write_pieces(os.path.join(turns, name), _redact_chunks(said, known))


def keep_files(folder: str, files: Iterable[SourceFile], secrets: Iterable[str], troubles: Troubles) -> None:
    """Copy files into a folder."""
    known = tuple(secrets)
    make_private_folder(folder)
    for raw in files:
        try:
            with _open_source(raw.source) as source:
                write_pieces(os.path.join(folder, raw.name), _redact_chunks(_read_chunks(source), known))
                if _read_bytes(source, 1):
                    troubles.add(raw.source, "", f"only its first {MOST_RAW} bytes were kept")
        except SourceUnreadable as error:
            troubles.add(raw.source, "", error)


def _redact_chunks(chunks: Iterable[bytes], secrets: tuple[str, ...]) -> Iterator[bytes]:
    mask = SecretMask(secrets)
    for chunk in chunks:
        yield mask.feed(chunk)
    yield mask.end()


def _read_chunks(source: IO[bytes]) -> Iterator[bytes]:
    left = MOST_RAW
    while left and (chunk := _read_bytes(source, min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _open_source(path: str) -> IO[bytes]:
    try:
        return source_files.open_file(path)
    except OSError as error:
        raise SourceUnreadable(error.strerror) from None


def _read_bytes(source: IO[bytes], most: int) -> bytes:
    """Report a failed read as such, not as a failed write."""
    try:
        return source.read(most)
    except OSError as error:
        raise SourceUnreadable(error.strerror) from None


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """List the originals of imported cases that could not be read completely, for uninstall."""
    folder = os.path.join(home.path, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []
    yield folder, "imported files", tuple(os.path.join(folder, name) for name in names if _is_stored_case(home, name))


def _is_stored_case(home: Home, case_id: str) -> bool:
    """Whether the home's own database has the case. A server is not asked; an unreadable database has none."""
    path = os.path.join(home.path, FOLDER, case_id)
    if os.path.islink(path) or not os.path.isdir(path) or home.has_database_server or home.is_new:
        return False
    try:
        return Cases(home.store()).get(case_id) is not None
    except JacklineError:
        return False
