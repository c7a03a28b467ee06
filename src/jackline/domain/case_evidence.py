"""What a case's events say that its row and its entries must hold, and where these say otherwise. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.case import COUNTERS, CaseStatus, Entry, EntryKind
from jackline.domain.events import canonical
from jackline.domain.evidence import Unreadable, digest
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.events import Event

_ADDED = {f"case.{kind}.added": COUNTERS[kind] for kind in EntryKind}
_CHANGED = frozenset(f"case.{kind}.{done}" for kind in EntryKind for done in ("changed", "resolved"))
_OF_ENTRY = ("id", "text", "status")


class Said(NamedTuple):
    """An entry as the events tell of it; of what a command printed only the digest."""

    text: str
    status: str
    at: int | None  # None: it was imported, and `data` is only what was changed since
    updated_at: int
    data: Mapping[str, Any]


class Told:
    """What the events of one case have said so far."""

    def __init__(self) -> None:
        self.columns: dict[str, object] = {}  # of its row; those that the events are silent about are not there
        self.entries: dict[str, Said] = {}
        self.imported = False  # whose entries have no events of their own

    def listen(self, event: Event) -> None:
        """Hear one more; Unreadable if it is none that jackline writes."""
        try:
            self._hear(event, json.loads(event.data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unreadable(f"event {event.seq} cannot be read") from error

    def altered(self, row: Mapping[str, object]) -> str:
        """The first column of the case that is not as the events say; empty if all are."""
        return next((name for name, said in self.columns.items() if row[name] != said), "")

    def altered_entry(self, row: Entry) -> bool:
        """Whether an entry is not as the events say; False if they are silent about it."""
        said = self.entries.get(row.id)
        if said is None:
            return False
        found = Said(row.text, str(row.status), row.at, row.updated_at, _digested(row.data))
        if said.at is None:
            said = said._replace(at=row.at, data={**found.data, **said.data})
        return found != said

    def _hear(self, event: Event, data: Mapping[str, Any]) -> None:
        if event.kind in _ADDED:
            self.entries[data["id"]] = Said(data["text"], data["status"], event.at, event.at, _rest(data))
            counter = _ADDED[event.kind]
            if counter in self.columns:
                self.columns[counter] = int(str(self.columns[counter])) + 1
        elif event.kind in _CHANGED:
            known = self.entries.get(data["id"], Said("", "", None, 0, {}))
            said = {"text": data["text"], "status": data["status"], "updated_at": event.at}
            self.entries[data["id"]] = known._replace(**said, data={**known.data, **_rest(data)})
        elif event.kind == "case.imported":
            self.imported = True
            self.columns = {"request": data["request"], "status": data["status"]}
        else:
            self.columns |= _said(event, data)


def _said(event: Event, data: Mapping[str, Any]) -> dict[str, object]:
    match event.kind.removeprefix("case."):
        case "started":
            named = {"request": data["request"], "user_name": data["user"], "run_id": data["run"]}
            nothing = dict.fromkeys(COUNTERS.values(), 0)
            begun = {"problem": canonical(data["problem"]), "created_at": event.at}
            return {**named, **begun, **nothing, **_placed(data), **_standing(CaseStatus.OPEN, {}, None)}
        case "closed":
            return _standing(CaseStatus.CLOSED, data, event.at)
        case "reopened":
            return _standing(CaseStatus.OPEN, {}, None)
        case "moved":
            return _placed(data)
    return {}  # it says nothing of the row


def _placed(data: Mapping[str, Any]) -> dict[str, object]:
    return {"repository": data["repository"], "path": data["path"]}


def _standing(status: CaseStatus, closeout: Mapping[str, Any], closed_at: int | None) -> dict[str, object]:
    return {"status": str(status), "closeout": canonical(dict(closeout)), "closed_at": closed_at}


def _rest(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in _OF_ENTRY}


def _digested(data: Mapping[str, Any]) -> dict[str, Any]:
    """Data of an entry as its event has it."""
    output = data.get("output")
    return {**data, "output": digest(str(output))} if output else dict(data)
