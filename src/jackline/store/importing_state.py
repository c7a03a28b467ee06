"""Work items, cases and stray events of a predecessor as rows, each with its chain. It decides nothing about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain import case as cases
from jackline.domain import work
from jackline.domain.events import GENESIS, canonical
from jackline.store import case_rows, importing_clean
from jackline.store.base import Chain
from jackline.store.driver import Again, clean
from jackline.store.import_contract import Import, ImportedEvent
from jackline.store.importing_runs import placed, write_events
from jackline.store.record_digests import RECORDS, digest_text
from jackline.store.work_events import digest_item
from jackline.store.work_reading import item_values, to_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.case import Case, Entry
    from jackline.domain.secrets import Redactor
    from jackline.domain.work import WorkItem
    from jackline.store.driver import Driver, Statements

_NUMBER = "id"  # under which an event of a stream keeps its number there


class Writer:
    """Writes them by a driver, redacted."""

    def __init__(self, driver: Driver, redactor: Redactor, *, rehearse: bool) -> None:
        self._driver, self._redactor, self._rehearse = driver, redactor, rehearse

    def item(self, item: WorkItem, events: Sequence[ImportedEvent], at: int, actor: str) -> Import:
        wanted = importing_clean.item(self._redactor, item)
        if self._rehearse:
            return self._driver.read(lambda one: _known_item(one, wanted) or Import.IMPORTED)
        told = ImportedEvent(at, "work.imported", clean(actor), _about_item(wanted, len(events)))
        kept = [*importing_clean.events(self._redactor, events), told]
        return self._driver.write(lambda one: _known_item(one, wanted) or _add_item(one, wanted, kept))

    def case(self, case: Case, entries: Sequence[Entry], at: int, actor: str) -> Import:
        wanted = importing_clean.case(self._redactor, case)
        if self._rehearse:
            return self._driver.read(lambda one: _known_case(one, wanted) or Import.IMPORTED)
        kept = [importing_clean.entry(self._redactor, entry) for entry in entries]
        counts = {str(kind): _highest(kept, kind) for kind in cases.EntryKind}
        wanted = wanted._replace(counts=counts)
        kept = [entry._replace(case_id=wanted.id) for entry in kept]
        told = ImportedEvent(at, "case.imported", clean(actor), _about_case(wanted, kept))
        return self._driver.write(lambda one: _known_case(one, wanted) or _add_case(one, wanted, kept, told))

    def events(self, stream: str, events: Sequence[tuple[int, ImportedEvent]]) -> int:
        if self._rehearse:
            return self._driver.read(lambda one: len(_newer(one, stream, events)))
        kept = importing_clean.events(self._redactor, [event for _, event in events])
        numbered = [(number, event) for (number, _), event in zip(events, kept, strict=True)]
        return self._driver.write(lambda one: _add_events(one, stream, numbered))


# --- work items


def _known_item(statements: Statements, wanted: WorkItem) -> Import | None:
    row = statements.one("get_item", {"id": wanted.id})
    if row is None:
        return None
    here = to_item(row)
    return Import.ALREADY if (here.kind, here.payload) == (wanted.kind, wanted.payload) else Import.TAKEN


def _add_item(statements: Statements, wanted: WorkItem, events: Sequence[ImportedEvent]) -> Import:
    made, chain = placed(work.stream_of(wanted.id), Chain(0, GENESIS), events)
    if statements.run("add_item", item_values(wanted._replace(**chain._asdict()))) == 0:
        raise Again  # the same id was made by somebody else since we looked
    write_events(statements, made)
    return Import.IMPORTED


def _about_item(item: WorkItem, events: int) -> dict[str, object]:
    about = {"kind": item.kind, "payload": digest_text(item.payload), "status": str(item.status), "events": events}
    owner = {} if item.owner_agent is None else {"owner": item.owner_agent}
    return {**about, **owner, RECORDS: digest_item(item)}


# --- cases


def _known_case(statements: Statements, wanted: Case) -> Import | None:
    row = statements.one("get_case", {"id": wanted.id})
    if row is None:
        return None
    here = case_rows.to_case(row)
    # Where a capsule could not be read, nobody knows what was asked.
    same_request = here.request == wanted.request or not (here.request and wanted.request)
    return Import.ALREADY if here.repository == wanted.repository and same_request else Import.TAKEN


def _add_case(statements: Statements, wanted: Case, entries: Sequence[Entry], told: ImportedEvent) -> Import:
    events, chain = placed(cases.stream_of(wanted.id), Chain(0, GENESIS), (told,))
    made = wanted._replace(**chain._asdict())
    if statements.run("add_case", case_rows.case_values(made)) == 0:
        raise Again
    write_events(statements, events)
    for entry in entries:
        statements.run("add_entry", case_rows.entry_values(entry))
    return Import.IMPORTED


def _highest(entries: Sequence[Entry], kind: cases.EntryKind) -> int:
    """The next entry gets a number above every one that was ever given."""
    return max((entry.number for entry in entries if entry.kind is kind), default=0)


def _about_case(case: Case, entries: Sequence[Entry]) -> dict[str, object]:
    """With a digest of the entries, which have no events of their own."""
    texts = [[entry.id, entry.at, entry.text, str(entry.status), dict(entry.data)] for entry in entries]
    counts = {str(kind): sum(entry.kind is kind for entry in entries) for kind in cases.EntryKind}
    records = case_rows.digest_case(case)
    for entry in entries:
        records |= case_rows.digest_entry(entry)
    about = {"request": case.request, "status": str(case.status), **counts}
    return {**about, "entries": digest_text(clean(canonical(texts))), RECORDS: records}


# --- events that belong to nothing


def _newer(
    statements: Statements, stream: str, events: Sequence[tuple[int, ImportedEvent]]
) -> list[tuple[int, ImportedEvent]]:
    row = statements.one("last_data_of_stream", {"stream": stream})
    last = json.loads(row[0]).get(_NUMBER, 0) if row is not None else None
    return [(number, event) for number, event in events if last is None or number > last]


def _add_events(statements: Statements, stream: str, events: Sequence[tuple[int, ImportedEvent]]) -> int:
    if not events:
        return 0
    at = events[-1][1].at
    statements.run("add_stream", {"id": stream, "at": at})
    seq, head = statements.one("lock_stream", {"id": stream}) or (0, GENESIS)
    newer = _newer(statements, stream, events)
    kept = (event._replace(data={**event.data, _NUMBER: number}) for number, event in newer)
    made, chain = placed(stream, Chain(seq, head), kept)
    write_events(statements, made)
    statements.run("move_stream", {"id": stream, "after": seq, "at": at, **chain._asdict()})
    return len(newer)
