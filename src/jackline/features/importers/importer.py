"""Imports sources: reads everything that was found, stores it once, and yields records. It prints nothing."""

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
    from jackline.features.importers.import_records import Found, Source, SourceFile, Trouble
    from jackline.store.store import Store


FOLDER, TURNS = "imported", "turns"
MOST_RAW = 1 << 30  # bytes of one file
_CHUNK = 1 << 18


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """List the originals of imported cases that could not be read completely, for uninstall."""
    folder = os.path.join(home.path, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []
    yield folder, "imported files", tuple(os.path.join(folder, name) for name in names if _is_stored_case(home, name))


def _is_stored_case(home: Home, case_id: str) -> bool:
    """Whether the home's own database has the case. A server is not asked; an unreadable database has none."""
    path = os.path.join(home.path, FOLDER, case_id)
    if os.path.islink(path) or not os.path.isdir(path) or "://" in home.database or home.is_new:
        return False
    try:
        return Cases(home.store()).get(case_id) is not None
    except JacklineError:
        return False


def keep_run_files(folder: str, found: FoundRun, secrets: Iterable[str], troubles: Troubles) -> None:
    """Write all files of a run; an unreadable source is reported."""
    known = tuple(secrets)
    kept, turns = os.path.join(folder, FOLDER), os.path.join(folder, TURNS)
    keep_files(kept, found.files, known, troubles)
    make_private_folder(turns)
    for raw in found.files:
        if raw.turn and os.path.exists(os.path.join(kept, raw.name)):
            _link_turn(os.path.join(kept, raw.name), os.path.join(turns, raw.turn))
    for name, text in found.said:
        said = (text.encode("utf-8", "replace"),)
        write_pieces(os.path.join(turns, name), _redact_chunks(said, known))


def keep_files(folder: str, files: Iterable[SourceFile], secrets: Iterable[str], troubles: Troubles) -> None:
    """Copy files into a folder."""
    known = tuple(secrets)
    make_private_folder(folder)
    for raw in files:
        try:
            _keep(os.path.join(folder, raw.name), raw, known, troubles)
        except SourceUnreadable as error:
            troubles.add(raw.source, "", error)


def _keep(path: str, raw: SourceFile, secrets: tuple[str, ...], troubles: Troubles) -> None:
    with _opened(raw.source) as source:
        write_pieces(path, _redact_chunks(_chunks(source), secrets))
        if _read(source, 1):
            troubles.add(raw.source, "", f"only its first {MOST_RAW} bytes were kept")


def _link_turn(path: str, turn: str) -> None:
    """Link the copy as the output of a turn, or copy it where links fail."""
    if not link_file(path, turn):
        with _opened(path) as copy:
            write_pieces(turn, _chunks(copy))


def _redact_chunks(chunks: Iterable[bytes], secrets: tuple[str, ...]) -> Iterator[bytes]:
    mask = SecretMask(secrets)
    for chunk in chunks:
        yield mask.feed(chunk)
    yield mask.end()


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    left = MOST_RAW
    while left and (chunk := _read(source, min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _opened(path: str) -> IO[bytes]:
    try:
        return source_files.open_file(path)
    except OSError as error:
        raise SourceUnreadable(error.strerror) from None


def _read(source: IO[bytes], most: int) -> bytes:
    """Report a failed read as such, not as a failed write."""
    try:
        return source.read(most)
    except OSError as error:
        raise SourceUnreadable(error.strerror) from None


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
        yield from importer.take(source)
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
            raise UsageError(_describe_nothing(path, wanted, own=finder.own > own))
        sources |= dict.fromkeys(here)
    return list(sources)


def _describe_nothing(path: str, wanted: str | None, *, own: bool) -> str:
    if own:
        return f"{path} holds runs of jackline itself, which are already in its database"
    what = f"no data of {wanted}" if wanted else "nothing that can be imported"
    return f"{path} holds {what}: see `jackline import --help` for what is recognised"


def _take_troubles(troubles: Troubles, kind: str) -> Iterator[ImportRecord]:
    for one in troubles.take():
        yield _build_trouble(one, kind)


def _build_trouble(one: Trouble, kind: str) -> ImportRecord:
    outcome = NOTED if one.is_note else UNREADABLE
    return ImportRecord(outcome=outcome, kind=kind, path=one.path, place=one.place, reason=one.reason)


class _Importer:
    """Stores the data of the readers."""

    def __init__(self, home: Home, troubles: Troubles, *, dry_run: bool) -> None:
        self._home, self._troubles, self._dry_run = home, troubles, dry_run
        self._actor = identity.read_actor(os.environ)
        self._changed = False

    def take(self, source: Source) -> Iterator[ImportRecord]:
        """Import one source."""
        before = self._troubles.count
        for found in import_module(_READERS[source.kind]).read(source, self._troubles):
            record = self._write(source, self._in_time(source, found), whole=self._troubles.count == before)
            self._changed = self._changed or record.outcome == ImportResult.IMPORTED
            yield record

    def _in_time(self, source: Source, found: Found) -> Found:
        kept = import_records.limit_times(found, clock.wall_ms())
        if kept is not found:
            self._troubles.note(source.path, _describe_found(found), "it has times in the future: they were set to now")
        return kept

    def finish(self) -> None:
        """Update the dashboard."""
        if self._changed and not self._dry_run:
            self._home.notify_change()

    def _store(self) -> Store | None:
        """The store; None in a dry run without a home."""
        if self._dry_run and self._home.is_new:
            return None
        return self._home.store(create=not self._dry_run)

    def _write(self, source: Source, found: Found, *, whole: bool) -> ImportRecord:
        match found:
            case FoundItem():
                return self._item(source, found)
            case FoundCase():
                return self._case(source, found, whole=whole)
            case FoundEvents():
                return self._events(source, found)
            case FoundRun():
                return self._run(source, found)

    def _item(self, source: Source, found: FoundItem) -> ImportRecord:
        store, at = self._store(), clock.wall_ms()
        became = ImportResult.IMPORTED
        if store is not None:
            became = Imports(store).import_item(found.item, found.events, at, self._actor, rehearse=self._dry_run)
        return _build_record(became, source, ITEM, found.item.id)

    def _events(self, source: Source, found: FoundEvents) -> ImportRecord:
        store = self._store()
        count = len(found.events)
        new = (
            count if store is None else Imports(store).import_events(found.stream, found.events, rehearse=self._dry_run)
        )
        became = ImportResult.IMPORTED if new else ImportResult.ALREADY
        return _build_record(became, source, EVENTS, found.stream)._replace(number=new or count)

    def _case(self, source: Source, found: FoundCase, *, whole: bool) -> ImportRecord:
        store = self._store()
        if store is None:
            return _build_record(ImportResult.IMPORTED, source, CASE, found.case.id)
        became, case = ImportResult.TAKEN, found.case
        for case_id in (found.case.id, found.other_id):
            case = found.case._replace(id=case_id)
            became = Imports(store).import_case(case, found.entries, 0, self._actor, rehearse=True)
            if became is not ImportResult.TAKEN:
                break
        if became is ImportResult.IMPORTED and not self._dry_run:
            self._keep_originals(store, case.id, () if whole else found.files)
            became = Imports(store).import_case(case, found.entries, clock.wall_ms(), self._actor)
        return _build_record(became, source, CASE, case.id)

    def _keep_originals(self, store: Store, case_id: str, files: Sequence[SourceFile]) -> None:
        """Keep the originals of a case with unreadable parts: its folder will be overwritten."""
        if files:
            folder = os.path.join(self._home.path, FOLDER, case_id)
            keep_files(folder, files, store.redactor.values, Troubles())  # their problems were reported

    def _run(self, source: Source, found: FoundRun) -> ImportRecord:
        store = self._store()
        for run_id in (found.run.id, found.other_id):
            found = found._replace(run=found.run._replace(id=run_id))
            became = (
                ImportResult.IMPORTED
                if store is None
                else Imports(store).import_run(found.run, 0, self._actor, rehearse=True)
            )
            if became is not ImportResult.TAKEN:
                break
        else:
            return _build_record(ImportResult.TAKEN, source, RUN, found.run.id)
        if store is not None and not self._dry_run:
            became = self._keep(store, found, became)
        return _build_record(became, source, RUN, found.run.id)

    def _keep(self, store: Store, found: FoundRun, became: ImportResult) -> ImportResult:
        """Write the files first, so that every run in the database has them."""
        run_id = found.run.id
        folder = self._home.folder(run_id)
        if became is ImportResult.IMPORTED:
            keep_run_files(folder, found, store.redactor.values, self._troubles)
            became = Imports(store).import_run(found.run, clock.wall_ms(), self._actor)
        elif os.path.exists(os.path.join(folder, "manifest.json")) or not os.path.isdir(folder):
            return became  # the files are here, or on another host
        self._export(store, run_id)
        return became

    def _export(self, store: Store, run_id: str) -> None:
        """Write the projections; a failure is only a warning."""
        run = store.runs.get(run_id)
        try:
            if run is not None:
                self._home.export(run)
        except JacklineError as error:
            self._home.warnings.append(f"{error}; `jackline export {run_id}` writes the files again")


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


def _build_record(became: ImportResult, source: Source, what: str, name: str) -> ImportRecord:
    return ImportRecord(
        outcome=str(became),
        kind=source.kind,
        path=source.path,
        what=what,
        id=name,
        reason=_TAKEN if became is ImportResult.TAKEN else "",
    )
