"""The events of a work item; with notes in full, because the item keeps only the newest. It writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.store.record_digests import digest_row, digest_text
from jackline.store.work_reading import item_values

if TYPE_CHECKING:
    from jackline.domain.work import WorkItem

ITEM = "item"  # the name of the item's row among the records
# Covered by its digest; not the lease and the time of the last change, which a renewal changes without an event.
ITEM_COLUMNS = (
    "id", "kind", "payload", "status", "owner_agent", "created_at", "notes", "priority", "attempts", "max_attempts",
    "token", "question", "answer", "dead", "finished_at",
)  # fmt: skip


def digest_item(item: WorkItem) -> dict[str, str]:
    """The digest of an item's row as it is after the write."""
    return {ITEM: digest_row(item_values(item), ITEM_COLUMNS)}


def build_created(item: WorkItem) -> Fact:
    """A new item; of its payload, which never changes, only the digest."""
    data: dict[str, object] = {
        "kind": item.kind,
        "payload": digest_text(item.payload),
        "priority": item.priority,
        "max_attempts": item.max_attempts,
        "status": str(item.status),
    }
    optional = {"notes": item.notes, "question": item.question}
    return Fact("work.created", data | {name: text for name, text in optional.items() if text})


def build_claimed(item: WorkItem, *, takeover: bool) -> Fact:
    """A claim."""
    data = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts, "takeover": takeover}
    return Fact("work.claimed", {"kind": item.kind, **data})


def build_resolved(item: WorkItem, notes: str | None) -> Fact:
    """An item that has ended."""
    return Fact(
        "work.resolved", {"kind": item.kind, "status": str(item.status), "token": item.token, **_build_notes(notes)}
    )


def build_released(item: WorkItem, notes: str | None) -> Fact:
    """An item that was returned to the queue."""
    held = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts}
    return Fact("work.released", {**held, **_build_notes(notes)})


def build_buried(item: WorkItem, by: str) -> Fact:
    """A dead letter; `by` is what used up the last attempt."""
    return Fact("work.buried", {"kind": item.kind, "attempts": item.attempts, "owner": item.owner_agent, "by": by})


def build_annotated(notes: str) -> Fact:
    """New notes."""
    return Fact("work.annotated", {"notes": notes})


def build_waiting(question: str) -> Fact:
    """A question to a person."""
    return Fact("work.waiting", {"question": question})


def build_answered(answer: str) -> Fact:
    """The answer of a person."""
    return Fact("work.answered", {"answer": answer})


def _build_notes(notes: str | None) -> dict[str, str]:
    return {} if notes is None else {"notes": notes}
