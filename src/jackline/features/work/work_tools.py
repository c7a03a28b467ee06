"""MCP tools for work items, and to ask a person: a question is a work item that waits for an answer.

`features.work.work_queue` does the work. No tool answers for a person.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from jackline.domain.states import WorkStatus
from jackline.errors import ItemRefused, UsageError
from jackline.features.mcp.context import LONGEST_VALUE, limit_json
from jackline.features.mcp.state_server import ADDS, READS, SETS
from jackline.features.work import work_queue
from jackline.features.work.work_item import LEASE_MS, MOST_ATTEMPTS, ItemQuery, build_answer_command
from jackline.formatting import format_iso

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import StateServer
    from jackline.features.work.work_item import WorkItem

_MS = 1_000
_LEASE_S = LEASE_MS // _MS
ItemId = Annotated[str, Field(description="the item's whole id")]
OwnerName = Annotated[str, Field(description="the holder; empty: you (JACKLINE_ACTOR, or the user)")]
Token = Annotated[int | None, Field(description="the token of your claim; an older token is refused")]
Lease = Annotated[int, Field(ge=1, le=86_400, description="how many seconds the claim lasts; work_renew extends it")]
Kinds = Annotated[list[str], Field(description="only these kinds; empty: any")]
Notes = Annotated[str | None, Field(description="replaces the notes; null: keep them")]
ResolutionWord = Literal["done", "failed", "cancelled"]
StatusWord = Literal["pending", "in_flight", "waiting_human", "done", "failed", "cancelled"]
KIND = "question"


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


def register_work_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tools for work items."""
    _register_queue(server, context)
    _register_held(server, context)
    _register_reads(server, context)


def _register_queue(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(SETS)
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
            item, new = work_queue.enqueue_item(
                home, id or None, kind, json.dumps(payload), priority=priority, max_attempts=max_attempts, notes=notes
            )
            return EnqueuedAnswer(new=new, item=build_item_answer(item))

    @server.add_described_tool(ADDS)
    def work_next(kinds: Kinds = [], owner: OwnerName = "", lease_seconds: Lease = _LEASE_S) -> NextAnswer:  # noqa: B006
        """Claim the next item: abandoned items first, then by priority, then by age. It is yours until the lease ends.

        Keep its `token` for work_renew, work_resolve and work_release.
        """
        with context.open() as home:
            item = work_queue.claim_next(home, kinds, owner, lease_seconds * _MS)
            return NextAnswer(item=build_item_answer(item) if item else None)

    @server.add_described_tool(ADDS)
    def work_claim(id: ItemId, owner: OwnerName = "", lease_seconds: Lease = _LEASE_S) -> ItemAnswer:
        """Claim this item; refused while another owner holds it."""
        with context.open() as home:
            return build_item_answer(work_queue.claim_item(home, id, owner, lease_seconds * _MS))


def _register_held(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(SETS)
    def work_renew(
        id: ItemId, owner: OwnerName = "", token: Token = None, lease_seconds: Lease = _LEASE_S
    ) -> ItemAnswer:
        """Extend the lease of an item that you hold."""
        with context.open() as home:
            return build_item_answer(work_queue.renew_item(home, id, owner, token, lease_seconds * _MS))

    @server.add_described_tool(SETS)
    def work_resolve(
        id: ItemId, status: ResolutionWord = "done", owner: OwnerName = "", token: Token = None, notes: Notes = None
    ) -> ItemAnswer:
        """End an item as done, failed or cancelled. Only the holder can end an item in flight."""
        with context.open() as home:
            ended = work_queue.resolve_item(home, id, status, owner, token, notes, is_agent=True)
            return build_item_answer(ended)

    @server.add_described_tool(SETS)
    def work_release(id: ItemId, owner: OwnerName = "", token: Token = None, notes: Notes = None) -> ItemAnswer:
        """Return an item that you hold to the queue; after the last attempt it fails."""
        with context.open() as home:
            return build_item_answer(work_queue.release_item(home, id, owner, token, notes))

    @server.add_described_tool(SETS)
    def work_wait_human(
        id: ItemId,
        question: Annotated[str, Field(description="the decision that you need")],
        owner: OwnerName = "",
        token: Token = None,
    ) -> ItemAnswer:
        """Let an item wait for a person; the answer returns it to the queue. To ask a question only, use ask_human."""
        with context.open() as home:
            return build_item_answer(work_queue.wait_for_human(home, id, question, owner, token))


def _register_reads(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(SETS)
    def work_annotate(id: ItemId, notes: Annotated[str, Field(description="replaces the old notes")]) -> ItemAnswer:
        """Replace the notes of an item, also without holding it; its events keep the old notes."""
        with context.open() as home:
            return build_item_answer(work_queue.annotate_item(home, id, notes))

    @server.add_described_tool(READS)
    def work_get(id: ItemId) -> ItemAnswer:
        """One item, with its complete payload, notes and answer."""
        with context.open() as home:
            return build_item_answer(work_queue.get_item(home, id))

    @server.add_described_tool(READS)
    def work_list(
        statuses: Annotated[list[StatusWord], Field(description="only these; empty: all")] = [],  # noqa: B006
        kinds: Kinds = [],  # noqa: B006
        owner: Annotated[str, Field(description="only items that this owner holds or held last; empty: all")] = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> ItemsAnswer:
        """Items, newest first."""
        with context.open() as home:
            query = ItemQuery(statuses=tuple(statuses), kinds=tuple(kinds), owner=owner or None, limit=limit)
            return ItemsAnswer(items=[build_list_answer(item) for item in work_queue.list_items(home, query)])


class AskedAnswer(TypedDict):
    """A question, and the answer if a person gave one."""

    id: str
    question: str
    answered: bool
    answer: str
    status: str
    next: str


def register_ask_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tools to ask a person."""

    @server.add_described_tool(SETS)
    def ask_human(
        question: Annotated[str, Field(description="the question, with everything that a person needs to decide")],
    ) -> AskedAnswer:
        """Ask a person for a decision that only a person can make. It returns at once; an answer can take hours.

        Continue with work that does not depend on the answer, and check with ask_human_result. Inside a run, end your
        turn when nothing else is left: the run waits for the answer and continues with it. Asking the same question
        again returns the first question and its answer.
        """
        return _build_answer(context, _ask(context, question))

    @server.add_described_tool(SETS)
    def ask_human_result(
        id: Annotated[str, Field(description="the id that ask_human returned")],
    ) -> AskedAnswer:
        """The answer to an earlier question, if a person has answered it."""
        return _build_answer(context, _read_question(context, id))


def _ask(context: ToolContext, question: str) -> WorkItem:
    if not question.strip():
        raise UsageError("the question is empty")
    asked, item_id = {"question": question}, None
    if context.run_id:
        # The same id for the same question in a run, so that an agent without memory does not ask a person twice.
        digest = hashlib.sha256(f"{context.run_id}\n{question}".encode("utf-8", "replace")).hexdigest()
        asked, item_id = {**asked, "run": context.run_id}, f"question-{digest[:24]}"
    with context.open() as home:
        item, _ = work_queue.enqueue_item(home, item_id, KIND, json.dumps(asked), question=question)
        return _resolve_answered(home, item)


def _read_question(context: ToolContext, item_id: str) -> WorkItem:
    with context.open() as home:
        return _resolve_answered(home, work_queue.get_item(home, item_id))


def _resolve_answered(home: Home, item: WorkItem) -> WorkItem:
    """Take an answered question out of the queue when its answer is read."""
    if item.kind == KIND and item.answer and item.status is WorkStatus.PENDING:
        with contextlib.suppress(ItemRefused):  # another agent has claimed it; the answer is the same
            return work_queue.resolve_item(home, item.id)
    return item


def _build_answer(context: ToolContext, item: WorkItem) -> AskedAnswer:
    waits = item.status is WorkStatus.WAITING_HUMAN
    command = context.format_command(*build_answer_command(item.id))
    return AskedAnswer(
        id=item.id,
        question=item.question,
        answered=bool(item.answer),
        answer=item.answer,
        status=item.status,
        next=f"a person answers with: {command}; then call ask_human_result" if waits else "",
    )


def build_item_answer(item: WorkItem) -> ItemAnswer:
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


def build_list_answer(item: WorkItem) -> ItemAnswer:
    """An item of a list, with long texts cut."""
    answer = build_item_answer(item)
    answer["payload"] = limit_json(item.payload)
    for name in ("notes", "question", "answer"):
        text = answer[name]
        answer[name] = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return answer
