"""MCP tools for the queue of work items. `app.work` does the work. No tool answers for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from jackline.app import work
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS, ItemQuery
from jackline.mcp.item import ItemAnswer, item_answer, line_of
from jackline.mcp.kinds import ADDS, READS, SETS

if TYPE_CHECKING:
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

_MS = 1_000
_LEASE_S = LEASE_MS // _MS
ItemId = Annotated[str, Field(description="the item's whole id")]
Owner = Annotated[str, Field(description="the holder; empty: you (JACKLINE_ACTOR, or the user)")]
Token = Annotated[int | None, Field(description="the token of your claim; an older token is refused")]
Lease = Annotated[int, Field(ge=1, le=86_400, description="how many seconds the claim lasts; work_renew extends it")]
Kinds = Annotated[list[str], Field(description="only these kinds; empty: any")]
Notes = Annotated[str | None, Field(description="replaces the notes; null: keep them")]
ResolutionWord = Literal["done", "failed", "cancelled"]
StatusWord = Literal["pending", "in_flight", "waiting_human", "done", "failed", "cancelled"]


class EnqueuedAnswer(TypedDict):
    """An item, and whether it is new."""

    new: bool
    item: ItemAnswer


class NextAnswer(TypedDict):
    """The claimed item; null: the queue is empty."""

    item: ItemAnswer | None


class ItemsAnswer(TypedDict):
    """Items, newest first; long texts are cut."""

    items: list[ItemAnswer]


def register_work_tools(server: Server, context: ToolContext) -> None:
    """Register the tools for work items."""
    _register_queue(server, context)
    _register_held(server, context)
    _register_reads(server, context)


def _register_queue(server: Server, context: ToolContext) -> None:
    @server.offer(SETS)
    def work_enqueue(
        kind: Annotated[str, Field(description="the kind of work, such as review")],
        id: Annotated[str, Field(description="your id for it; empty: a new id, so that each call adds an item")] = "",
        payload: Annotated[dict[str, Any], Field(description="the data for the work")] = {},  # noqa: B006 - never changed
        priority: Annotated[int, Field(description="higher values are claimed first")] = 0,
        notes: str = "",
        max_attempts: Annotated[int, Field(ge=1, le=1_000)] = MOST_ATTEMPTS,
    ) -> EnqueuedAnswer:
        """Enqueue a unit of work. Enqueueing the same id, kind and payload again changes nothing."""
        with context.open() as home:
            item, new = work.enqueue(
                home, id or None, kind, json.dumps(payload), priority=priority, max_attempts=max_attempts, notes=notes
            )
            return EnqueuedAnswer(new=new, item=item_answer(item))

    @server.offer(ADDS)
    def work_next(kinds: Kinds = [], owner: Owner = "", lease_seconds: Lease = _LEASE_S) -> NextAnswer:  # noqa: B006
        """Claim the next item: abandoned items first, then by priority, then by age. It is yours until the lease ends.

        Keep its `token` for work_renew, work_resolve and work_release.
        """
        with context.open() as home:
            item = work.next_item(home, kinds, owner, lease_seconds * _MS)
            return NextAnswer(item=item_answer(item) if item else None)

    @server.offer(ADDS)
    def work_claim(id: ItemId, owner: Owner = "", lease_seconds: Lease = _LEASE_S) -> ItemAnswer:
        """Claim this item; refused while another owner holds it."""
        with context.open() as home:
            return item_answer(work.claim(home, id, owner, lease_seconds * _MS))


def _register_held(server: Server, context: ToolContext) -> None:
    @server.offer(SETS)
    def work_renew(id: ItemId, owner: Owner = "", token: Token = None, lease_seconds: Lease = _LEASE_S) -> ItemAnswer:
        """Extend the lease of an item that you hold."""
        with context.open() as home:
            return item_answer(work.renew(home, id, owner, token, lease_seconds * _MS))

    @server.offer(SETS)
    def work_resolve(
        id: ItemId, status: ResolutionWord = "done", owner: Owner = "", token: Token = None, notes: Notes = None
    ) -> ItemAnswer:
        """End an item as done, failed or cancelled. Only the holder can end an item in flight."""
        with context.open() as home:
            return item_answer(work.resolve(home, id, status, owner, token, notes))

    @server.offer(SETS)
    def work_release(id: ItemId, owner: Owner = "", token: Token = None, notes: Notes = None) -> ItemAnswer:
        """Return an item that you hold to the queue; after the last attempt it fails."""
        with context.open() as home:
            return item_answer(work.release(home, id, owner, token, notes))

    @server.offer(SETS)
    def work_wait_human(
        id: ItemId,
        question: Annotated[str, Field(description="the decision that you need")],
        owner: Owner = "",
        token: Token = None,
    ) -> ItemAnswer:
        """Let an item wait for a person; the answer returns it to the queue. To ask a question only, use ask_human."""
        with context.open() as home:
            return item_answer(work.wait_human(home, id, question, owner, token))


def _register_reads(server: Server, context: ToolContext) -> None:
    @server.offer(SETS)
    def work_annotate(id: ItemId, notes: Annotated[str, Field(description="replaces the old notes")]) -> ItemAnswer:
        """Replace the notes of an item, also without holding it; its events keep the old notes."""
        with context.open() as home:
            return item_answer(work.annotate(home, id, notes))

    @server.offer(READS)
    def work_get(id: ItemId) -> ItemAnswer:
        """One item, with its complete payload, notes and answer."""
        with context.open() as home:
            return item_answer(work.get(home, id))

    @server.offer(READS)
    def work_list(
        statuses: Annotated[list[StatusWord], Field(description="only these; empty: all")] = [],  # noqa: B006
        kinds: Kinds = [],  # noqa: B006
        owner: Annotated[str, Field(description="only items that this owner holds or held last; empty: all")] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> ItemsAnswer:
        """Items, newest first."""
        with context.open() as home:
            query = ItemQuery(tuple(statuses), tuple(kinds), owner or None, limit=limit)
            return ItemsAnswer(items=[line_of(item) for item in work.list_items(home, query)])
