"""Imports sources: reads everything that was found, stores it once, and yields records. It prints nothing."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import who
from jackline.app.importing import clocks, keeping
from jackline.app.importing.finding import Finder
from jackline.app.importing.kinds import (
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
from jackline.errors import JacklineError, UsageError
from jackline.named import NamedTuple
from jackline.store.import_contract import Import

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.app.importing.kinds import Found, RawFile, Source, Trouble
    from jackline.store.contract import Store

_READERS = {
    AGENT_STATE: "jackline.app.importing.agent_state",
    NOTEBOOK: "jackline.app.importing.notebook",
    AGENTPAIR: "jackline.app.importing.agentpair",
    AGENT_RUNNER: "jackline.app.importing.agent_runner",
    UNIVERSAL_AGENT: "jackline.app.importing.universal_agent",
}
RUN, ITEM, CASE, EVENTS = "run", "item", "case", "events"
UNREADABLE, NOTED = "unreadable", "noted"
_TAKEN = "another record has this id: it was left unchanged"


class Record(NamedTuple):
    """One imported thing, or one problem."""

    outcome: str
    kind: str  # of the source
    path: str
    what: str = ""
    id: str = ""
    number: int = 1  # of things
    place: str = ""
    reason: str = ""


def take(home: Home, paths: Sequence[str], wanted: str | None = None, *, dry_run: bool = False) -> Iterator[Record]:
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
    finder = Finder(troubles, wanted)
    sources: dict[Source, None] = {}
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist: name a file or folder of an older tool")
        before, own = troubles.count, finder.own
        here = list(finder.at(path))
        if not here and troubles.count == before:
            raise UsageError(_describe_nothing(path, wanted, own=finder.own > own))
        sources |= dict.fromkeys(here)
    return list(sources)


def _describe_nothing(path: str, wanted: str | None, *, own: bool) -> str:
    if own:
        return f"{path} holds runs of jackline itself, which are already in its database"
    what = f"no data of {wanted}" if wanted else "nothing that can be imported"
    return f"{path} holds {what}: see `jackline import --help` for what is recognised"


def _take_troubles(troubles: Troubles, kind: str) -> Iterator[Record]:
    for one in troubles.take():
        yield _build_trouble(one, kind)


def _build_trouble(one: Trouble, kind: str) -> Record:
    outcome = NOTED if one.is_note else UNREADABLE
    return Record(outcome, kind, one.path, place=one.place, reason=one.reason)


class _Importer:
    """Stores the data of the readers."""

    def __init__(self, home: Home, troubles: Troubles, *, dry_run: bool) -> None:
        self._home, self._troubles, self._dry_run = home, troubles, dry_run
        self._actor = who.actor(os.environ)
        self._changed = False

    def take(self, source: Source) -> Iterator[Record]:
        """Import one source."""
        before = self._troubles.count
        for found in import_module(_READERS[source.kind]).read(source, self._troubles):
            record = self._write(source, self._in_time(source, found), whole=self._troubles.count == before)
            self._changed = self._changed or record.outcome == Import.IMPORTED
            yield record

    def _in_time(self, source: Source, found: Found) -> Found:
        kept = clocks.not_after(found, clock.wall_ms())
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

    def _write(self, source: Source, found: Found, *, whole: bool) -> Record:
        match found:
            case FoundItem():
                return self._item(source, found)
            case FoundCase():
                return self._case(source, found, whole=whole)
            case FoundEvents():
                return self._events(source, found)
            case FoundRun():
                return self._run(source, found)

    def _item(self, source: Source, found: FoundItem) -> Record:
        store, at = self._store(), clock.wall_ms()
        became = Import.IMPORTED
        if store is not None:
            became = store.import_item(found.item, found.events, at, self._actor, rehearse=self._dry_run)
        return _build_record(became, source, ITEM, found.item.id)

    def _events(self, source: Source, found: FoundEvents) -> Record:
        store = self._store()
        count = len(found.events)
        new = count if store is None else store.import_events(found.stream, found.events, rehearse=self._dry_run)
        became = Import.IMPORTED if new else Import.ALREADY
        return _build_record(became, source, EVENTS, found.stream)._replace(number=new or count)

    def _case(self, source: Source, found: FoundCase, *, whole: bool) -> Record:
        store = self._store()
        if store is None:
            return _build_record(Import.IMPORTED, source, CASE, found.case.id)
        became, case = Import.TAKEN, found.case
        for case_id in (found.case.id, found.other_id):
            case = found.case._replace(id=case_id)
            became = store.import_case(case, found.entries, 0, self._actor, rehearse=True)
            if became is not Import.TAKEN:
                break
        if became is Import.IMPORTED and not self._dry_run:
            self._keep_originals(store, case.id, () if whole else found.files)
            became = store.import_case(case, found.entries, clock.wall_ms(), self._actor)
        return _build_record(became, source, CASE, case.id)

    def _keep_originals(self, store: Store, case_id: str, files: Sequence[RawFile]) -> None:
        """Keep the originals of a case with unreadable parts: its folder will be overwritten."""
        if files:
            folder = os.path.join(self._home.path, keeping.FOLDER, case_id)
            keeping.keep_files(folder, files, store.redactor.values, Troubles())  # their problems were reported

    def _run(self, source: Source, found: FoundRun) -> Record:
        store = self._store()
        for run_id in (found.run.id, found.other_id):
            found = found._replace(run=found.run._replace(id=run_id))
            became = Import.IMPORTED if store is None else store.import_run(found.run, 0, self._actor, rehearse=True)
            if became is not Import.TAKEN:
                break
        else:
            return _build_record(Import.TAKEN, source, RUN, found.run.id)
        if store is not None and not self._dry_run:
            became = self._keep(store, found, became)
        return _build_record(became, source, RUN, found.run.id)

    def _keep(self, store: Store, found: FoundRun, became: Import) -> Import:
        """Write the files first, so that every run in the database has them."""
        run_id = found.run.id
        folder = self._home.folder(run_id)
        if became is Import.IMPORTED:
            keeping.keep(folder, found, store.redactor.values, self._troubles)
            became = store.import_run(found.run, clock.wall_ms(), self._actor)
        elif os.path.exists(os.path.join(folder, "manifest.json")) or not os.path.isdir(folder):
            return became  # the files are here, or on another host
        self._export(store, run_id)
        return became

    def _export(self, store: Store, run_id: str) -> None:
        """Write the projections; a failure is only a warning."""
        run = store.run(run_id)
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


def _build_record(became: Import, source: Source, what: str, name: str) -> Record:
    return Record(str(became), source.kind, source.path, what, name, reason=_TAKEN if became is Import.TAKEN else "")
