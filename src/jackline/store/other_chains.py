"""The chains of work items, cases and the journal, computed again and compared with their rows. It only reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Protocol

from jackline.domain import case, case_evidence, work, work_evidence
from jackline.domain.case import Entry, EntryKind
from jackline.domain.events import GENESIS, Event, broken_at
from jackline.domain.evidence import Unreadable, other_end
from jackline.named import NamedTuple
from jackline.store.driver import Row, Statements
from jackline.store.rows import columns

_PAGE = 1000
_SOME = 100  # entries at a time: what a command printed may be large


class _Witness(Protocol):
    """Who hears the events of one stream, and then looks at what they tell of."""

    def listen(self, event: Event) -> None:
        """Hear one more; Unreadable if it is none that jackline writes."""
        ...

    def odd_rows(self, statements: Statements, name: str) -> Iterator[str]:
        """Where rows say something else than the events."""
        ...


class _OfItem:
    """Of a work item: its row."""

    def __init__(self) -> None:
        self._told: work_evidence.Told = {}

    def listen(self, event: Event) -> None:
        self._told = work_evidence.listen(self._told, event)

    def odd_rows(self, statements: Statements, name: str) -> Iterator[str]:
        row = statements.one("get_item", {"id": name})
        wrong = "" if row is None else work_evidence.altered(self._told, work.WorkItem(*row))
        if wrong:
            yield _altered("its row", wrong)


class _OfCase:
    """Of a case: its row, and its entries."""

    def __init__(self) -> None:
        self._told = case_evidence.Told()

    def listen(self, event: Event) -> None:
        self._told.listen(event)

    def odd_rows(self, statements: Statements, name: str) -> Iterator[str]:
        row = statements.one("get_case", {"id": name})
        wrong = "" if row is None else self._told.altered(dict(zip(columns("case"), row, strict=True)))
        if wrong:
            yield _altered("its row", wrong)
        missing = dict.fromkeys(self._told.entries)
        for row in _entries(statements, name):
            entry = _entry(row)
            if entry is None or (entry.id not in self._told.entries and not self._told.imported):
                yield f"{row[1]} {row[2]} is among its entries, and no event tells of it"
                continue
            missing.pop(entry.id, None)
            if self._told.altered_entry(entry):
                yield _altered(entry.id)
        yield from (f"{one} is missing from its entries" for one in missing)


class _Kind(NamedTuple):
    """The query for where the chains of this kind stand, what a row is called, its stream, and who hears it."""

    query: str
    what: str
    stream_of: Callable[[str], str]
    witness: Callable[[], _Witness] | None = None


_KINDS = (
    _Kind("item_chains", "work item", work.stream_of, _OfItem),
    _Kind("case_chains", "case", case.stream_of, _OfCase),
    _Kind("other_chains", "stream", str),
)


def problems(statements: Statements) -> Iterator[str]:
    """What is wrong with any of them, in words."""
    for kind in _KINDS:
        after = ""
        while page := statements.all(kind.query, {"after": after, "limit": _PAGE}):
            for name, seq, head in page:
                for wrong in _wrong(statements, kind, name, seq, head):
                    yield f"{kind.what} {name}: {wrong}"
            after = page[-1][0]


def _wrong(statements: Statements, kind: _Kind, name: str, seq: int, head: str) -> Iterator[str]:
    witness = kind.witness() if kind.witness else None
    broken = _broken(statements, kind.stream_of(name), seq, head, witness)
    if broken:
        yield broken
    elif witness is not None:
        yield from witness.odd_rows(statements, name)


def _broken(statements: Statements, stream: str, wanted_seq: int, wanted_head: str, witness: _Witness | None) -> str:
    """The first thing that is wrong with one of the chains; empty if it holds."""
    stray = statements.one("event_before", {"stream": stream, "first": 1})
    if stray is not None:
        return f"event {stray[0]} stands before the first"
    seq, head = 0, GENESIS
    for events in _pages(statements, stream):
        broken = broken_at(events, head, seq)
        if broken is not None:
            return f"its chain is broken at event {broken}"
        seq, head = events[-1].seq, events[-1].hash
        strange = next(_strange(events, witness), None) if witness else None
        if strange is not None:
            return f"event {strange} is none that jackline writes"
    return other_end("chain", (seq, head), (wanted_seq, wanted_head))


def _strange(events: list[Event], witness: _Witness) -> Iterator[int]:
    """Let them be heard; those that nobody understands."""
    for event in events:
        try:
            witness.listen(event)
        except Unreadable:
            yield event.seq


def _pages(statements: Statements, stream: str) -> Iterator[list[Event]]:
    values = {"stream": stream, "limit": _PAGE, "after": 0}
    while events := [Event(*row) for row in statements.all("some_events", values)]:
        yield events
        values["after"] = events[-1].seq


def _entries(statements: Statements, case_id: str) -> Iterator[Row]:
    values: dict[str, object] = {"case_id": case_id, "kind": "", "after": 0, "limit": _SOME}
    while found := statements.all("page_of_entries", values):
        yield from found
        values["kind"], values["after"] = found[-1][1:3]


def _entry(row: Row) -> Entry | None:
    """The entry as it stands; None if jackline cannot have written it."""
    try:
        kind, data = EntryKind(row[1]), json.loads(row[-1])
    except (TypeError, ValueError):
        return None
    values = [row[0], kind, *row[2:-1], data]
    return Entry(*values) if isinstance(data, dict) and isinstance(row[2], int) else None


def _altered(what: str, where: str = "") -> str:
    return f"{what} was altered after it had been written" + (f": {where}" if where else "")
