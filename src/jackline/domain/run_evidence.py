"""What a run's events say that its row must hold, and what they say of the records beside it. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.evidence import RECORDS, Unreadable, state_told
from jackline.domain.states import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.events import Event

_OF_STATE = ("failure", "proof", "reason", "wake_at")  # what an event may say of the state that it tells


class Told:
    """What the events of one run have said so far of its row, its spec and its records."""

    def __init__(self) -> None:
        self.columns: dict[str, object] = {}  # of its row; those that the events are silent about are not there
        self.records: dict[str, str] = {}  # the digest of each by its name
        self.spec: str | None = None
        self.covers = False  # whether every record has its event; before jackline wrote them so, none has
        self.imported = False

    def listen(self, event: Event) -> None:
        """Hear one more; Unreadable if it is none that jackline writes."""
        if event.kind.startswith(("agent.", "call.")):
            return  # most of them; they say nothing of the run itself
        try:
            self._hear(event, json.loads(event.data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unreadable(f"event {event.seq} cannot be read") from error

    def _hear(self, event: Event, data: Mapping[str, Any]) -> None:
        self.records |= data.get(RECORDS) or {}
        state = state_told(event)
        if state is not None:
            for name in _OF_STATE:
                self.columns.pop(name, None)
            self.columns |= {"state": str(state), "finished_at": event.at if state in TERMINAL else None}
            self.columns |= {name: data[name] for name in _OF_STATE if name in data}
        if event.kind == "run.claimed":
            self.columns["token"] = data["token"]
        elif event.kind == "run.created":
            self.spec, self.covers = data.get("spec"), RECORDS in data
            self.columns |= {name: data.get(name) for name in ("number", "parent", "forked_at")}
            if "lineage" in data or data.get("parent") is None:
                self.columns["lineage"] = data.get("lineage", event.stream)
        elif event.kind == "run.imported":
            self.imported = True

    def altered(self, row: Mapping[str, object]) -> str:
        """The first column of the run that is not as the events say; empty if all are."""
        return next((name for name, said in self.columns.items() if row[name] != said), "")
