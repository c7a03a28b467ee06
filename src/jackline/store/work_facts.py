"""What the events of a work item say; notes in full, because the item keeps only the newest. It writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.evidence import digest

if TYPE_CHECKING:
    from jackline.domain.work import WorkItem


def created(item: WorkItem) -> Fact:
    """A new item; of its payload, which never changes, only the digest."""
    data: dict[str, object] = {
        "kind": item.kind,
        "payload": digest(item.payload),
        "priority": item.priority,
        "max_attempts": item.max_attempts,
        "status": str(item.status),
    }
    optional = {"notes": item.notes, "question": item.question}
    return Fact("work.created", data | {name: text for name, text in optional.items() if text})


def claimed(item: WorkItem, *, takeover: bool) -> Fact:
    """An item that somebody now holds."""
    data = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts, "takeover": takeover}
    return Fact("work.claimed", {"kind": item.kind, **data})


def resolved(item: WorkItem, notes: str | None) -> Fact:
    """An item that came to its end."""
    return Fact("work.resolved", {"kind": item.kind, "status": str(item.status), "token": item.token, **_noted(notes)})


def released(item: WorkItem, notes: str | None) -> Fact:
    """An item that was given back."""
    held = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts}
    return Fact("work.released", {**held, **_noted(notes)})


def buried(item: WorkItem, by: str) -> Fact:
    """A dead letter; `by` is what used up the last attempt."""
    return Fact("work.buried", {"kind": item.kind, "attempts": item.attempts, "owner": item.owner_agent, "by": by})


def annotated(notes: str) -> Fact:
    """New notes."""
    return Fact("work.annotated", {"notes": notes})


def waiting(question: str) -> Fact:
    """What a person is asked."""
    return Fact("work.waiting", {"question": question})


def answered(answer: str) -> Fact:
    """What a person said."""
    return Fact("work.answered", {"answer": answer})


def _noted(notes: str | None) -> dict[str, str]:
    return {} if notes is None else {"notes": notes}
