"""Checks the chain of a stream of events, and reads the digests of the rows that its events wrote. It only reads.

Runs have more to check: see `run_verifier`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import GENESIS, Event, broken_at
from jackline.named import NamedTuple
from jackline.store.record_digests import RECORDS, digest_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jackline.store.driver import Row, Statements

PAGE = 1000
_FIRST_KINDS = (".created", ".started", ".imported")


class UnreadableEvent(ValueError):
    """An event that jackline did not write."""


class RowDigests:
    """The newest digest of each row of a stream, by name; empty if the row's newest event has no digest."""

    def __init__(self) -> None:
        self.newest: dict[str, str] = {}
        self.is_imported = False
        self.has_unlisted_rows = False  # an older version imported the stream, without events for each row
        self.uncovered = 0  # rows that were looked up and are not covered

    def add(self, event: Event, data: Mapping[str, Any], written: Iterable[str], required: Iterable[str] = ()) -> None:
        """Read the digests of an event. Without digests, the rows that it has `written` are not covered from now on.

        UnreadableEvent unless it has digests or all the keys that older versions wrote.
        """
        records = data.get(RECORDS)
        if records is None and not all(key in data for key in required):
            raise UnreadableEvent(f"event {event.seq} cannot be read")
        self.newest |= dict.fromkeys(written, "")
        if records is not None:
            if not isinstance(records, dict) or not all(isinstance(one, str) for one in records.values()):
                raise UnreadableEvent(f"event {event.seq} cannot be read")
            self.newest |= records
        if event.kind.endswith(".imported"):
            self.is_imported, self.has_unlisted_rows = True, records is None

    def is_altered(self, name: str, values: Mapping[str, Any], names: Iterable[str]) -> bool:
        """Whether a row differs from its newest digest; False, and counted, if it is not covered."""
        digest = self.newest.get(name)
        if not digest:
            self.uncovered += 1
            return False
        return digest != digest_row(values, names)


def parse_data(event: Event) -> dict[str, Any]:
    """The data of an event; UnreadableEvent unless it is a JSON object."""
    try:
        data = json.loads(event.data)
    except (ValueError, RecursionError) as error:
        raise UnreadableEvent(f"event {event.seq} cannot be read") from error
    if not isinstance(data, dict):
        raise UnreadableEvent(f"event {event.seq} cannot be read")
    return data


class StreamKind(NamedTuple):
    """A kind of stream: the query for its chains, the label of a row, the stream of a row, and how it is checked."""

    query: str
    label: str
    build_stream: Callable[[str], str]
    row: str = ""  # the name of the stream's own row among the records
    kinds: Mapping[str, tuple[str, ...]] = {}  # the events that write rows, and the keys that older versions wrote
    find_altered: Callable[[Statements, str, RowDigests], Iterator[str]] | None = None


def check_streams(statements: Statements, kind: StreamKind) -> Iterator[str]:
    """Every problem of the streams of a kind."""
    for name, seq, head in read_pages(statements, kind.query):
        digests = RowDigests()
        broken = _find_break(statements, kind, name, (seq, head), digests)
        if broken:
            yield f"{kind.label} {name}: {broken}"
        elif kind.find_altered is not None:
            yield from (f"{kind.label} {name}: {one}" for one in kind.find_altered(statements, name, digests))


def _find_break(
    statements: Statements, kind: StreamKind, name: str, expected: tuple[int, str], digests: RowDigests
) -> str:
    """The first break of a chain; empty if it holds."""
    stream = kind.build_stream(name)
    stray = statements.one("event_before", {"stream": stream, "first": 1})
    if stray is not None:
        return f"event {stray[0]} precedes the first"
    seq, head = 0, GENESIS
    for events in read_events(statements, stream, 0):
        broken = broken_at(events, head, seq)
        if broken is not None:
            return f"its chain is broken at event {broken}"
        for event in events:
            # Events before the first of our own kinds came with an import.
            if event.kind in kind.kinds and (digests.newest or event.kind.endswith(_FIRST_KINDS)):
                try:
                    data = parse_data(event)
                    digests.add(event, data, filter(None, (kind.row, data.get("id"))), kind.kinds[event.kind])
                except (UnreadableEvent, TypeError):
                    return f"event {event.seq} was not written by jackline"
        seq, head = events[-1].seq, events[-1].hash
    return describe_end("chain", (seq, head), expected)


def describe_end(what: str, found: tuple[int, str], expected: tuple[int, str]) -> str:
    """How the end of a chain (sequence, hash) differs from its row; empty if it does not."""
    if found == expected:
        return ""
    if found[0] != expected[0]:
        return f"its {what} ends at event {found[0]}, its row says {expected[0]}"
    return f"its {what} ends at event {found[0]} with another hash than its row says"


def read_pages(statements: Statements, query: str) -> Iterator[Row]:
    """The rows of a query that is read in pages by the first column."""
    after = ""
    while page := statements.all(query, {"after": after, "limit": PAGE}):
        yield from page
        after = page[-1][0]


def read_events(statements: Statements, stream: str, after: int) -> Iterator[list[Event]]:
    """The events of a stream after a number, in pages."""
    values = {"stream": stream, "limit": PAGE}
    while events := [Event(*row) for row in statements.all("some_events", {**values, "after": after})]:
        yield events
        after = events[-1].seq
