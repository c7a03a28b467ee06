"""agent-state's `state.sqlite`: work items with their events, and events without an item. Read-only."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from jackline.app import identity
from jackline.domain.events import canonical
from jackline.domain.states import WORK_ENDED, WorkStatus
from jackline.features.importers import source_files
from jackline.features.importers.clean_values import (
    MOST_TEXT,
    SizeBudget,
    clean_json,
    clean_name,
    clean_text,
    parse_moment,
)
from jackline.features.importers.databases import Cells, RowQuery, SourceDatabase, open_database
from jackline.features.importers.import_records import (
    AGENT_STATE,
    FoundEvents,
    FoundItem,
    Source,
    Troubles,
    build_digest,
)
from jackline.features.importers.imported_records import ImportedEvent
from jackline.features.importers.source_files import SourceUnreadable
from jackline.features.journal import journal_events
from jackline.features.work.work_item import WorkItem, is_item_name
from jackline.store.models import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterator

_ITEMS = ("id", "kind", "payload", "status", "owner_agent", "created_at", "updated_at", "notes")
_EVENTS = ("ts", "type", "actor", "work_item_id", "payload")
_MOST_EVENTS = 10_000  # of one item
_BATCH = 1_000
_ITEM = "work_item_id"
_STRAY = (
    "work_item_id IS NULL OR unreadable(work_item_id) "
    "OR work_item_id NOT IN (SELECT id FROM work_items WHERE id IS NOT NULL)"
)
_UNKNOWN_TYPE = "import.event"
_UNKNOWN_NAME = "-"
_TOO_MUCH = "[left out: the events of this item are too large]"
_NO_QUESTION = "it waited for a person when it was imported"


def read(source: Source, troubles: Troubles) -> Iterator[FoundItem | FoundEvents]:
    """Read items, then batches of events without an item."""
    try:
        with open_database(source.path) as database:
            unreadable: set[object] = set()
            yield from _read_items(database, unreadable, troubles)
            yield from _read_stray_events(database, unreadable, troubles)
    except OSError as error:
        troubles.add(source.path, "", error.strerror)
    except (SourceUnreadable, sqlite3.Error) as error:
        troubles.add(source.path, "", error)


def _read_items(database: SourceDatabase, unreadable: set[object], troubles: Troubles) -> Iterator[FoundItem]:
    for row, cells in database.rows(RowQuery(table="work_items", columns=_ITEMS), troubles):
        try:
            item = _build_item(cells)
        except SourceUnreadable as error:
            unreadable.add(cells["id"])
            troubles.add(database.path, f"row {row} of work_items", error)
            continue
        place = f"row {row} of work_items"
        payload = _clean_payload(database, place, cells["payload"], troubles, most=source_files.MOST_LINE)
        item = item._replace(payload=canonical(payload))
        yield FoundItem(item, tuple(_read_item_events(database, item.id, troubles)))


def _build_item(cells: Cells) -> WorkItem:
    item_id, kind, status = cells["id"], cells["kind"], cells["status"]
    for what, value in (("id", item_id), ("kind", kind)):
        if not isinstance(value, str) or not is_item_name(value):
            raise SourceUnreadable(f"its {what} is not a name in one line")
    if status not in set(WorkStatus):
        raise SourceUnreadable(f"its status is none of {', '.join(WorkStatus)}")
    if isinstance(cells["payload"], str) and len(cells["payload"]) > source_files.MOST_LINE:
        raise SourceUnreadable(f"its payload is longer than {source_files.MOST_LINE} characters")
    created = parse_moment(cells["created_at"])
    updated = parse_moment(cells["updated_at"]) or created
    if created is None or updated is None:
        raise SourceUnreadable("its created_at is not a time")
    owner, notes, status = (
        cells["owner_agent"],
        clean_text(cells["notes"], source_files.MOST_LINE),
        WorkStatus(status),
    )
    held = int(status is WorkStatus.IN_FLIGHT)
    return WorkItem(
        id=str(item_id),
        kind=str(kind),
        payload="",
        status=status,
        owner_agent=clean_name(owner, _UNKNOWN_NAME) if owner or held else None,
        created_at=created,
        updated_at=max(created, updated),
        notes=notes,
        attempts=held,
        token=held,
        question=(notes or _NO_QUESTION) if status is WorkStatus.WAITING_HUMAN else "",
        finished_at=max(created, updated) if status in WORK_ENDED else None,
    )


def _clean_payload(
    database: SourceDatabase, place: str, payload: object, troubles: Troubles, most: int = MOST_TEXT
) -> Any:  # noqa: ANN401 - any JSON
    """A payload as bounded JSON; an invalid text becomes a JSON string."""
    try:
        value = source_files.parse_value(payload) if isinstance(payload, str) else payload
    except SourceUnreadable:
        value = payload
    kept = clean_json(value, most)
    if kept != value:
        troubles.note(database.path, place, "its payload was too deep, too long or too large: it was cut")
    return kept


def _read_item_events(database: SourceDatabase, item_id: str, troubles: Troubles) -> Iterator[ImportedEvent]:
    query = RowQuery(table="events", columns=_EVENTS, where=f"{_ITEM} = ?", values=(item_id,), most=_MOST_EVENTS)
    if not database.has("events", _ITEM):
        return
    room = SizeBudget()
    for row, cells in database.rows(query, troubles):
        event = _build_event(database, row, cells, troubles)
        if event is not None:
            data = event.data if room.reserve(event.data) else {**event.data, "payload": _TOO_MUCH}
            yield event._replace(data={**data, "id": row})


def _read_stray_events(database: SourceDatabase, unreadable: set[object], troubles: Troubles) -> Iterator[FoundEvents]:
    stream = _name_stream(database)
    waiting: list[tuple[int, ImportedEvent]] = []
    room = SizeBudget()
    for row, cells in database.rows(_build_stray_query(database, unreadable), troubles):
        event = _build_event(database, row, cells, troubles)
        if event is not None and row >= 0:
            item = cells[_ITEM]
            named = {"work_item_id": clean_name(item, _UNKNOWN_NAME, 200)} if item is not None else {}
            waiting.append((row, event._replace(data={**event.data, **named})))
        if len(waiting) == _BATCH or (waiting and not room.reserve(waiting[-1][1].data)):
            yield FoundEvents(stream, tuple(waiting))
            waiting.clear()
            room = SizeBudget()
    if waiting:
        yield FoundEvents(stream, tuple(waiting))


def _build_stray_query(database: SourceDatabase, unreadable: set[object]) -> RowQuery:
    """Events without an item, or of an item that is missing or unreadable."""
    if not database.has("events", _ITEM) or not database.has("work_items", "id"):
        return RowQuery(table="events", columns=_EVENTS)
    database.define(
        "unreadable", lambda item: (item.decode("utf-8", "replace") if isinstance(item, bytes) else item) in unreadable
    )
    return RowQuery(table="events", columns=_EVENTS, where=_STRAY)


def _name_stream(database: SourceDatabase) -> str:
    """The stream is named after the first event, so that a copy of the file has the same stream."""
    quiet = Troubles()
    first = next(database.rows(RowQuery(table="events", columns=_EVENTS, most=1), quiet), (0, {}))
    values = canonical(clean_json(list(map(str, first[1].values()))))
    return f"{JOURNAL}{AGENT_STATE}-{build_digest(AGENT_STATE, values)}"


def _build_event(database: SourceDatabase, row: int, cells: Cells, troubles: Troubles) -> ImportedEvent | None:
    at, kind = parse_moment(cells["ts"]), cells["type"]
    if at is None or not isinstance(kind, str) or not kind:
        reason = "its ts is not a time" if at is None else "its type is not a word"
        troubles.add(database.path, f"row {row} of events", reason)
        return None
    payload = _clean_payload(database, f"row {row} of events", cells["payload"], troubles)
    data: dict[str, Any] = {"imported": AGENT_STATE, "payload": payload}
    if journal_events.find_kind_problem(kind):  # reserved for events of jackline
        data["type"] = clean_text(kind, 200)
        kind = _UNKNOWN_TYPE
    return ImportedEvent(
        at=at, kind=kind, actor=clean_name(cells["actor"], _UNKNOWN_NAME, identity.LONGEST_ACTOR), data=data
    )
