"""What a work item's events say that its row must hold, and where the row says otherwise. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.evidence import Unreadable, digest
from jackline.domain.states import WorkStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.events import Event
    from jackline.domain.work import WorkItem

# By column; of a payload its digest. Columns that the events are silent about are not there: the lease and the time of
# the last change, which a renewal moves without an event.
Told = dict[str, object]

_FIRST = frozenset({"work.created", "work.imported"})
_NEW: Told = {
    "owner_agent": None, "notes": "", "attempts": 0, "token": 0, "question": "", "answer": "", "dead": False,
    "finished_at": None,
}  # fmt: skip


def listen(told: Told, event: Event) -> Told:
    """What is told after this event; Unreadable if it is none that jackline writes."""
    if not event.kind.startswith("work.") or not (told or event.kind in _FIRST):
        return told  # somebody's own, or from before the item was imported
    try:
        said = _said(event, json.loads(event.data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"event {event.seq} cannot be read") from error
    return said if event.kind in _FIRST else {**told, **said}


def altered(told: Told, item: WorkItem) -> str:
    """The first column that is not as the events say; empty if all are."""
    row = {**item._asdict(), "payload": digest(str(item.payload)), "status": str(item.status), "dead": bool(item.dead)}
    return next((name for name, said in told.items() if row[name] != said), "")


def _said(event: Event, data: Mapping[str, Any]) -> Told:
    notes = {"notes": data["notes"]} if "notes" in data else {}
    match event.kind.removeprefix("work."):
        case "created":
            bounds = {"priority": data["priority"], "max_attempts": data["max_attempts"]}
            asked = {"question": data.get("question", ""), "created_at": event.at}
            return {**_NEW, **_begun(data), **bounds, **asked, **notes}
        case "imported":
            return _begun(data) | ({"owner_agent": data["owner"]} if "owner" in data else {})
        case "claimed":
            held = {"owner_agent": data["owner"], "token": data["token"], "attempts": data["attempt"]}
            return {"status": str(WorkStatus.IN_FLIGHT), **held}
        case "resolved":
            return {"status": data["status"], "finished_at": event.at, **notes}
        case "released":
            return {"status": str(WorkStatus.PENDING), **notes}
        case "buried":
            return {"status": str(WorkStatus.FAILED), "dead": True, "finished_at": event.at}
        case "waiting":
            return {"status": str(WorkStatus.WAITING_HUMAN), "question": data["question"], "answer": ""}
        case "answered":
            return {"status": str(WorkStatus.PENDING), "answer": data["answer"]}
        case "annotated":
            return {"notes": data["notes"]}
    return {}  # of a newer jackline: what it says of the row is not known here


def _begun(data: Mapping[str, Any]) -> Told:
    return {name: data[name] for name in ("kind", "payload", "status")}
