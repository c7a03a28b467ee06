"""The tools by which an agent asks a person: a work item that waits, and a bounded look for its answer."""

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
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

KIND = "question"
MOST_SECONDS = 300  # below the time after which a silent agent is taken for a stuck one
_LOOK_SECONDS = 0.5


class AskedAnswer(TypedDict):
    """A question and, as soon as a person gave one, its answer."""

    id: str
    question: str
    answered: bool
    answer: str
    status: str
    next: str


def register(server: Server, desk: Desk) -> None:
    """Offer them."""

    @server.offer(SETS)
    async def ask_human(
        question: Annotated[str, Field(description="with all that a person needs to know to decide")],
        wait_seconds: Annotated[
            int, Field(ge=0, le=MOST_SECONDS, description="how long to wait for the answer; 0: not at all")
        ] = 0,
    ) -> AskedAnswer:
        """Ask a person something that only a person can decide. It stands on their dashboard until it is answered.

        An answer may take hours: ask, go on with what does not depend on it, and look again with ask_human_result.
        Inside a run the same question asked again is the same question, and gets the answer that it got.
        """
        item = await anyio.to_thread.run_sync(_ask, desk, question)
        with anyio.move_on_after(wait_seconds):
            while not item.answer and item.status is WorkStatus.WAITING_HUMAN:
                await anyio.sleep(_LOOK_SECONDS)
                item = await anyio.to_thread.run_sync(_look, desk, item.id)
        return _answer(desk, item)

    @server.offer(SETS)
    def ask_human_result(
        id: Annotated[str, Field(description="what ask_human gave")],
    ) -> AskedAnswer:
        """The answer of a person to a question that was asked before, if there is one by now."""
        return _answer(desk, _look(desk, id))


def _ask(desk: Desk, question: str) -> WorkItem:
    if not question.strip():
        raise UsageError("what shall the person be asked? the question is empty")
    asked = {"question": question, **({"run": desk.run_id} if desk.run_id else {})}
    with desk.open() as home:
        item, _ = work.enqueue(home, _name(desk, question), KIND, json.dumps(asked), question=question)
        return _settled(home, item)


def _look(desk: Desk, item_id: str) -> WorkItem:
    with desk.open() as home:
        return _settled(home, work.get(home, item_id))


def _settled(home: Home, item: WorkItem) -> WorkItem:
    """A question that was answered is no work for anybody: it leaves the queue when its answer is read."""
    if item.kind == KIND and item.answer and item.status is WorkStatus.PENDING:
        with contextlib.suppress(ItemRefused):  # somebody claimed it meanwhile; the answer is the same
            return work.resolve(home, item.id)
    return item


def _name(desk: Desk, question: str) -> str | None:
    """The same in one run, so that an agent that lost its memory does not ask a person twice."""
    if desk.run_id is None:
        return None
    digest = hashlib.sha256(f"{desk.run_id}\n{question}".encode("utf-8", "replace")).hexdigest()
    return f"question-{digest[:24]}"


def _answer(desk: Desk, item: WorkItem) -> AskedAnswer:
    waits = item.status is WorkStatus.WAITING_HUMAN
    command = desk.typed(*answer_command(item.id))
    return AskedAnswer(
        id=item.id,
        question=item.question,
        answered=bool(item.answer),
        answer=item.answer,
        status=item.status,
        next=f"a person types: {command}; then look with ask_human_result" if waits else "",
    )
