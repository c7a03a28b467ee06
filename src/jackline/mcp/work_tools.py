"""The tools for the queue of work items. Thin: `app.work` does the work. None of them answers for a person."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from jackline.app import work
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS
from jackline.mcp.item import ItemAnswer, item_answer, line_of
from jackline.mcp.kinds import ADDS, READS, SETS
from jackline.store.state_contract import ItemQuery

if TYPE_CHECKING:
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

_MS = 1_000
_LEASE_S = LEASE_MS // _MS
ItemId = Annotated[str, Field(description="the item's whole id")]
Owner = Annotated[str, Field(description="who holds it; empty: you, by JACKLINE_ACTOR or the user's name")]
Token = Annotated[int | None, Field(description="the token of the claim, so that an older claim is refused")]
Lease = Annotated[int, Field(ge=1, le=86_400, description="for how many seconds it is yours; work_renew moves it on")]
Kinds = Annotated[list[str], Field(description="only of these kinds; empty: any")]
Notes = Annotated[str | None, Field(description="put in place of the old notes; null: they stay")]
ResolutionWord = Literal["done", "failed", "cancelled"]
StatusWord = Literal["pending", "in_flight", "waiting_human", "done", "failed", "cancelled"]


class EnqueuedAnswer(TypedDict):
    """An item, and whether it was not there before."""

    new: bool
    item: ItemAnswer


class NextAnswer(TypedDict):
    """The item that is yours now; null: nothing is to be done."""

    item: ItemAnswer | None


class ItemsAnswer(TypedDict):
    """Items, newest first; long texts are cut."""

    items: list[ItemAnswer]


def register(server: Server, desk: Desk) -> None:
    """Offer them."""
    _register_queue(server, desk)
    _register_held(server, desk)
    _register_looking(server, desk)


def _register_queue(server: Server, desk: Desk) -> None:
    @server.offer(SETS)
    def work_enqueue(
        kind: Annotated[str, Field(description="what sort of work it is, such as review")],
        id: Annotated[str, Field(description="your own id for it; empty: a fresh one, and then twice is two")] = "",
        payload: Annotated[dict[str, Any], Field(description="what has to be known to do it")] = {},  # noqa: B006 - never changed
        priority: Annotated[int, Field(description="the higher is claimed first")] = 0,
        notes: str = "",
        max_attempts: Annotated[int, Field(ge=1, le=1_000)] = MOST_ATTEMPTS,
    ) -> EnqueuedAnswer:
        """Put a unit of work into the queue. The same id, kind and payload again is the same item."""
        with desk.open() as home:
            item, new = work.enqueue(
                home, id or None, kind, json.dumps(payload), priority=priority, max_attempts=max_attempts, notes=notes
            )
            return EnqueuedAnswer(new=new, item=item_answer(item))

    @server.offer(ADDS)
    def work_next(kinds: Kinds = [], owner: Owner = "", lease_seconds: Lease = _LEASE_S) -> NextAnswer:  # noqa: B006
        """Claim the next item: given-up ones first, then by priority, then by age. Nobody else gets it meanwhile.

        Keep its `token` for work_renew, work_resolve and work_release.
        """
        with desk.open() as home:
            item = work.next_item(home, kinds, owner, lease_seconds * _MS)
            return NextAnswer(item=item_answer(item) if item else None)

    @server.offer(ADDS)
    def work_claim(id: ItemId, owner: Owner = "", lease_seconds: Lease = _LEASE_S) -> ItemAnswer:
        """Claim this very item; refused while somebody else holds it."""
        with desk.open() as home:
            return item_answer(work.claim(home, id, owner, lease_seconds * _MS))


def _register_held(server: Server, desk: Desk) -> None:
    @server.offer(SETS)
    def work_renew(id: ItemId, owner: Owner = "", token: Token = None, lease_seconds: Lease = _LEASE_S) -> ItemAnswer:
        """Keep an item that you hold for longer."""
        with desk.open() as home:
            return item_answer(work.renew(home, id, owner, token, lease_seconds * _MS))

    @server.offer(SETS)
    def work_resolve(
        id: ItemId, status: ResolutionWord = "done", owner: Owner = "", token: Token = None, notes: Notes = None
    ) -> ItemAnswer:
        """End an item as done, failed or cancelled; one that is in flight only if you hold it."""
        with desk.open() as home:
            return item_answer(work.resolve(home, id, status, owner, token, notes))

    @server.offer(SETS)
    def work_release(id: ItemId, owner: Owner = "", token: Token = None, notes: Notes = None) -> ItemAnswer:
        """Give an item that you hold back to the queue; after its last attempt it has failed."""
        with desk.open() as home:
            return item_answer(work.release(home, id, owner, token, notes))

    @server.offer(SETS)
    def work_wait_human(
        id: ItemId,
        question: Annotated[str, Field(description="what the person has to decide")],
        owner: Owner = "",
        token: Token = None,
    ) -> ItemAnswer:
        """Let an item wait for a person; with the answer it is in the queue again. To just ask, use ask_human."""
        with desk.open() as home:
            return item_answer(work.wait_human(home, id, question, owner, token))


def _register_looking(server: Server, desk: Desk) -> None:
    @server.offer(SETS)
    def work_annotate(
        id: ItemId, notes: Annotated[str, Field(description="put in place of the old ones")]
    ) -> ItemAnswer:
        """Write notes on an item, whoever holds it; the old ones stay in its events."""
        with desk.open() as home:
            return item_answer(work.annotate(home, id, notes))

    @server.offer(READS)
    def work_get(id: ItemId) -> ItemAnswer:
        """One item, with its whole payload, notes and answer."""
        with desk.open() as home:
            return item_answer(work.get(home, id))

    @server.offer(READS)
    def work_list(
        statuses: Annotated[list[StatusWord], Field(description="only these; empty: all")] = [],  # noqa: B006
        kinds: Kinds = [],  # noqa: B006
        owner: Annotated[str, Field(description="only what this one holds or held last; empty: everybody")] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> ItemsAnswer:
        """Items, newest first."""
        with desk.open() as home:
            query = ItemQuery(tuple(statuses), tuple(kinds), owner or None, limit=limit)
            return ItemsAnswer(items=[line_of(item) for item in work.list_items(home, query)])
