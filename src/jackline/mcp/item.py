"""Work items as the values that MCP tools return to a model. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from jackline.formatting import format_iso
from jackline.mcp.desk import LONGEST_VALUE, limit_json

if TYPE_CHECKING:
    from jackline.domain.work import WorkItem


class ItemAnswer(TypedDict):
    """A work item."""

    id: str
    kind: str
    status: str
    payload: Any
    notes: str
    priority: int
    owner: str | None
    token: int
    attempts: int
    max_attempts: int
    dead: bool
    question: str
    answer: str
    created_at: str
    updated_at: str
    finished_at: str | None


def item_answer(item: WorkItem) -> ItemAnswer:
    """The whole item."""
    return ItemAnswer(
        id=item.id,
        kind=item.kind,
        status=item.status,
        payload=json.loads(item.payload),
        notes=item.notes,
        priority=item.priority,
        owner=item.owner_agent,
        token=item.token,
        attempts=item.attempts,
        max_attempts=item.max_attempts,
        dead=item.dead,
        question=item.question,
        answer=item.answer,
        created_at=format_iso(item.created_at),
        updated_at=format_iso(item.updated_at),
        finished_at=format_iso(item.finished_at),
    )


def line_of(item: WorkItem) -> ItemAnswer:
    """An item of a list, with long texts cut."""
    answer = item_answer(item)
    answer["payload"] = limit_json(item.payload)
    for name in ("notes", "question", "answer"):
        text = answer[name]
        answer[name] = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return answer
