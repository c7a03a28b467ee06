"""Verification of work items: each row against its newest digest. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.work.item_store import ITEM, ITEM_COLUMNS
from jackline.features.work.work_item import get_item_stream
from jackline.store.rows import columns
from jackline.store.verify import StreamKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.store.driver import Statements
    from jackline.store.verify import RowDigests

# The events that write an item's row, and the keys by which those of older versions, without digests, are known.
_KINDS = {
    "work.created": ("kind", "payload", "status", "priority", "max_attempts"),
    "work.imported": ("kind", "payload", "status"),
    "work.claimed": ("owner", "token", "attempt"),
    "work.resolved": ("status",),
    "work.released": ("owner",),
    "work.buried": ("attempts",),
    "work.waiting": ("question",),
    "work.answered": ("answer",),
    "work.annotated": ("notes",),
}


def _find_altered(statements: Statements, item_id: str, digests: RowDigests) -> Iterator[str]:
    row = statements.one("get_item", {"id": item_id})
    if row is not None and digests.is_altered(ITEM, dict(zip(columns("item"), row, strict=True)), ITEM_COLUMNS):
        yield "its row was altered after it had been written"


ITEM_STREAMS = StreamKind(
    query="item_chains",
    label="work item",
    build_stream=get_item_stream,
    row=ITEM,
    kinds=_KINDS,
    find_altered=_find_altered,
)
