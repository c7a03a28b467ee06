"""Prints work items as text or JSON. The JSON has the field names of the predecessor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.cli.output import columns
from jackline.clock import wall_ms
from jackline.formatting import format_iso, format_local, make_printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.cli.output import Output
    from jackline.domain.work import WorkItem

_COLUMNS = columns("ID KIND STATUS* PRIORITY> TRIES> OWNER CREATED SAYS~")


def record(item: WorkItem) -> dict[str, object]:
    """A work item as a JSON value."""
    return {
        "id": item.id,
        "kind": item.kind,
        "payload": _parse_payload(item.payload),
        "status": str(item.status),
        "owner_agent": item.owner_agent,
        "created_at": format_iso(item.created_at),
        "updated_at": format_iso(item.updated_at),
        "notes": item.notes,
        "priority": item.priority,
        "attempts": item.attempts,
        "max_attempts": item.max_attempts,
        "token": item.token,
        "question": item.question,
        "answer": item.answer,
        "dead": item.dead,
        "finished_at": format_iso(item.finished_at),
    }


def _parse_payload(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # another program wrote it: show it as text
        return text


def show_item(item: WorkItem, out: Output) -> int:
    """Print one item with all its fields."""
    if out.json:
        out.json_line(record(item))
        return 0
    shown = {
        "id": item.id,
        "kind": item.kind,
        "status": out.state(str(item.status)) + (" (dead: no attempts left)" if item.dead else ""),
        "owner": item.owner_agent or "",
        "token": str(item.token or ""),
        "tries": f"{item.attempts} of {item.max_attempts}",
        "priority": str(item.priority or ""),
        "created": format_local(item.created_at, wall_ms()),
        "updated": format_local(item.updated_at, wall_ms()),
        "payload": item.payload,
        "notes": item.notes,
        "question": item.question,
        "answer": item.answer,
    }
    for name, text in shown.items():
        if text:
            out.line(f"{name:<9} {text if name == 'status' else make_printable(text)}")
    return 0


def show_items(items: Sequence[WorkItem], limit: int, out: Output, *, after: bool = False) -> int:
    """Print one item per line, and a hint if there are more than the limit."""
    page = items[:limit]
    if out.json:
        out.json_lines(record(item) for item in page)
        return 0
    if not page:
        out.note("no matching work items")
        return 0
    now = wall_ms()
    out.table(_COLUMNS, [_build_cells(item, now, out) for item in page])
    if len(items) > limit:
        out.note(_format_next_page(out, page[-1].id) if after else "there are more: use a larger --limit")
    return 0


def _format_next_page(out: Output, last: str) -> str:
    from jackline.cli.commands.list import next_page

    return f"more: {next_page(out, last)}"


def _build_cells(item: WorkItem, now: int, out: Output) -> list[str]:
    created = format_local(item.created_at, now) if out.out.terminal else str(format_iso(item.created_at))
    return [
        item.id,
        item.kind,
        f"{item.status}: dead" if item.dead else str(item.status),
        str(item.priority),
        f"{item.attempts}/{item.max_attempts}",
        item.owner_agent or "-",
        created,
        item.question if item.status == "waiting_human" else item.notes or item.payload,
    ]
