"""MCP tools that ask a person: each question is a work item that waits for an answer."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING, Annotated

import anyio
import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from jackline.app import work
from jackline.domain.states import WorkStatus
from jackline.domain.work import answer_command
from jackline.errors import ItemRefused, UsageError
from jackline.mcp.kinds import SETS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.work import WorkItem
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

KIND = "question"
MOST_SECONDS = 300  # less than the idle timeout of an agent
_POLL_SECONDS = 0.5


class AskedAnswer(TypedDict):
    """A question, and the answer if a person gave one."""

    id: str
    question: str
    answered: bool
    answer: str
    status: str
    next: str


def register_ask_tools(server: Server, context: ToolContext) -> None:
    """Register the tools to ask a person."""

    @server.offer(SETS)
    async def ask_human(
        question: Annotated[str, Field(description="the question, with everything that a person needs to decide")],
        wait_seconds: Annotated[
            int, Field(ge=0, le=MOST_SECONDS, description="how long to wait for the answer; 0: do not wait")
        ] = 0,
    ) -> AskedAnswer:
        """Ask a person for a decision that only a person can make. The question stays on the dashboard until answered.

        An answer can take hours: ask, continue with work that does not depend on it, and check with ask_human_result.
        Inside a run, asking the same question again returns the first question and its answer.
        """
        item = await anyio.to_thread.run_sync(_ask, context, question)
        with anyio.move_on_after(wait_seconds):
            while not item.answer and item.status is WorkStatus.WAITING_HUMAN:
                await anyio.sleep(_POLL_SECONDS)
                item = await anyio.to_thread.run_sync(_read_question, context, item.id)
        return _build_answer(context, item)

    @server.offer(SETS)
    def ask_human_result(
        id: Annotated[str, Field(description="the id that ask_human returned")],
    ) -> AskedAnswer:
        """The answer to an earlier question, if a person has answered it."""
        return _build_answer(context, _read_question(context, id))


def _ask(context: ToolContext, question: str) -> WorkItem:
    if not question.strip():
        raise UsageError("the question is empty")
    asked = {"question": question, **({"run": context.run_id} if context.run_id else {})}
    with context.open() as home:
        item, _ = work.enqueue(home, _build_id(context, question), KIND, json.dumps(asked), question=question)
        return _resolve_answered(home, item)


def _read_question(context: ToolContext, item_id: str) -> WorkItem:
    with context.open() as home:
        return _resolve_answered(home, work.get(home, item_id))


def _resolve_answered(home: Home, item: WorkItem) -> WorkItem:
    """Take an answered question out of the queue when its answer is read."""
    if item.kind == KIND and item.answer and item.status is WorkStatus.PENDING:
        with contextlib.suppress(ItemRefused):  # another agent has claimed it; the answer is the same
            return work.resolve(home, item.id)
    return item


def _build_id(context: ToolContext, question: str) -> str | None:
    """The same id for the same question in a run, so that an agent without memory does not ask a person twice."""
    if context.run_id is None:
        return None
    digest = hashlib.sha256(f"{context.run_id}\n{question}".encode("utf-8", "replace")).hexdigest()
    return f"question-{digest[:24]}"


def _build_answer(context: ToolContext, item: WorkItem) -> AskedAnswer:
    waits = item.status is WorkStatus.WAITING_HUMAN
    command = context.format_command(*answer_command(item.id))
    return AskedAnswer(
        id=item.id,
        question=item.question,
        answered=bool(item.answer),
        answer=item.answer,
        status=item.status,
        next=f"a person answers with: {command}; then call ask_human_result" if waits else "",
    )
