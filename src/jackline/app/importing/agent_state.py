"""agent-state's `state.sqlite`: work items with their events, and events without an item. Read-only."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from jackline.app import who
from jackline.app.importing import files, values
from jackline.app.importing.databases import Asked, Cells, Database, reading
from jackline.app.importing.files import Unreadable
from jackline.app.importing.kinds import AGENT_STATE, FoundEvents, FoundItem, Source, Troubles, digits
from jackline.domain import journal
from jackline.domain.events import canonical
from jackline.domain.states import WORK_ENDED, WorkStatus
from jackline.domain.work import WorkItem, is_name
from jackline.store.contract import JOURNAL
from jackline.store.import_contract import ImportedEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

_ITEMS = ("id", "kind", "payload", "status", "owner_agent", "created_at", "updated_at", "notes")
_EVENTS = ("ts", "type", "actor", "work_item_id", "payload")
_MOST_EVENTS = 10_000  # of one item
_AT_ONCE = 1_000
_ITEM = "work_item_id"
_STRAY = (
    "work_item_id IS NULL OR unreadable(work_item_id) "
    "OR work_item_id NOT IN (SELECT id FROM work_items WHERE id IS NOT NULL)"
)
_UNKNOWN_TYPE = "import.event"
_NOBODY = "-"
_TOO_MUCH = "[left out: the events of this item are too large]"
_ASKED = "it waited for a person when it was imported"


def read(source: Source, troubles: Troubles) -> Iterator[FoundItem | FoundEvents]:
    """Read items, then batches of events without an item."""
    try:
        with reading(source.path) as database:
            unreadable: set[object] = set()
            yield from _items(database, unreadable, troubles)
            yield from _stray(database, unreadable, troubles)
    except OSError as error:
        troubles.add(source.path, "", error.strerror)
    except (Unreadable, sqlite3.Error) as error:
        troubles.add(source.path, "", error)


def _items(database: Database, unreadable: set[object], troubles: Troubles) -> Iterator[FoundItem]:
    for row, cells in database.rows(Asked("work_items", _ITEMS), troubles):
        try:
            item = _item(cells)._replace(payload=_payload(database, row, cells["payload"], troubles))
        except Unreadable as error:
            unreadable.add(cells["id"])
            troubles.add(database.path, f"row {row} of work_items", error)
            continue
        yield FoundItem(item, tuple(_events_of(database, item.id, troubles)))


def _item(cells: Cells) -> WorkItem:
    item_id, kind, status = cells["id"], cells["kind"], cells["status"]
    for what, told in (("id", item_id), ("kind", kind)):
        if not isinstance(told, str) or not is_name(told):
            raise Unreadable(f"its {what} is not a name in one line")
    if status not in set(WorkStatus):
        raise Unreadable(f"its status is none of {', '.join(WorkStatus)}")
    created = values.moment(cells["created_at"])
    updated = values.moment(cells["updated_at"]) or created
    if created is None or updated is None:
        raise Unreadable("its created_at is not a time")
    owner, notes, status = cells["owner_agent"], values.text(cells["notes"], files.MOST_LINE), WorkStatus(status)
    held = int(status is WorkStatus.IN_FLIGHT)
    return WorkItem(
        str(item_id),
        str(kind),
        "",
        status,
        values.name(owner, _NOBODY) if owner or held else None,
        created,
        max(created, updated),
        notes,
        attempts=held,
        token=held,
        question=(notes or _ASKED) if status is WorkStatus.WAITING_HUMAN else "",
        finished_at=max(created, updated) if status in WORK_ENDED else None,
    )


def _payload(database: Database, row: int, told: object, troubles: Troubles) -> str:
    """Canonical JSON; an invalid text becomes a JSON string."""
    if isinstance(told, str) and len(told) > files.MOST_LINE:
        raise Unreadable(f"its payload is longer than {files.MOST_LINE} characters")
    return canonical(_tamed(database, f"row {row} of work_items", told, troubles, most=files.MOST_LINE))


def _tamed(database: Database, place: str, told: object, troubles: Troubles, most: int = values.MOST_TEXT) -> Any:  # noqa: ANN401 - any JSON
    try:
        value = files.value_of(told) if isinstance(told, str) else told
    except Unreadable:
        value = told
    kept = values.tame(value, most)
    if kept != value:
        troubles.note(database.path, place, "its payload was too deep, too long or too large: it was cut")
    return kept


def _events_of(database: Database, item_id: str, troubles: Troubles) -> Iterator[ImportedEvent]:
    asked = Asked("events", _EVENTS, f"{_ITEM} = ?", (item_id,), _MOST_EVENTS)
    if not database.has("events", _ITEM):
        return
    room = values.Room()
    for row, cells in database.rows(asked, troubles):
        event = _event(database, row, cells, troubles)
        if event is not None:
            told = event.data if room.takes(event.data) else {**event.data, "payload": _TOO_MUCH}
            yield event._replace(data={**told, "id": row})


def _stray(database: Database, unreadable: set[object], troubles: Troubles) -> Iterator[FoundEvents]:
    stream = _stream(database)
    waiting: list[tuple[int, ImportedEvent]] = []
    room = values.Room()
    for row, cells in database.rows(_asked_stray(database, unreadable), troubles):
        event = _event(database, row, cells, troubles)
        if event is not None and row >= 0:
            item = cells[_ITEM]
            named = {"work_item_id": values.name(item, _NOBODY, 200)} if item is not None else {}
            waiting.append((row, event._replace(data={**event.data, **named})))
        if len(waiting) == _AT_ONCE or (waiting and not room.takes(waiting[-1][1].data)):
            yield FoundEvents(stream, tuple(waiting))
            waiting.clear()
            room = values.Room()
    if waiting:
        yield FoundEvents(stream, tuple(waiting))


def _asked_stray(database: Database, unreadable: set[object]) -> Asked:
    """Events without an item, or of an item that is missing or unreadable."""
    if not database.has("events", _ITEM) or not database.has("work_items", "id"):
        return Asked("events", _EVENTS)
    database.define("unreadable", lambda item: _decoded(item) in unreadable)
    return Asked("events", _EVENTS, _STRAY)


def _decoded(item: object) -> object:
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else item


def _stream(database: Database) -> str:
    """The stream is named after the first event, so that a copy of the file has the same stream."""
    quiet = Troubles()
    first = next(database.rows(Asked("events", _EVENTS, most=1), quiet), (0, {}))
    return f"{JOURNAL}{AGENT_STATE}-{digits(AGENT_STATE, canonical(values.tame(list(map(str, first[1].values())))))}"


def _event(database: Database, row: int, cells: Cells, troubles: Troubles) -> ImportedEvent | None:
    at, kind = values.moment(cells["ts"]), cells["type"]
    if at is None or not isinstance(kind, str) or not kind:
        reason = "its ts is not a time" if at is None else "its type is not a word"
        troubles.add(database.path, f"row {row} of events", reason)
        return None
    payload = _tamed(database, f"row {row} of events", cells["payload"], troubles)
    data: dict[str, Any] = {"imported": AGENT_STATE, "payload": payload}
    if journal.wrong_kind(kind):  # reserved for events of jackline
        data["type"] = values.text(kind, 200)
        kind = _UNKNOWN_TYPE
    return ImportedEvent(at, kind, values.name(cells["actor"], _NOBODY, who.LONGEST_ACTOR), data)
