"""Questions of agents in the inbox: work items that wait for a person. It prints nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.app.inbox import QUESTION, InboxEntry
from jackline.domain.states import WorkStatus
from jackline.features.work import work_queue
from jackline.features.work.work_item import ItemQuery, build_answer_command

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.work.work_item import WorkItem

_MOST = 1000


def list_inbox_entries(home: Home) -> list[InboxEntry]:
    """The open questions, each with the run whose agent asks."""
    query = ItemQuery(statuses=(str(WorkStatus.WAITING_HUMAN),), limit=_MOST)
    return [_build_entry(home, item) for item in work_queue.list_items(home, query)]


def answer_question(home: Home, entry: InboxEntry, text: str) -> str | None:
    """Store a person's answer; the id of the run whose agent asked."""
    work_queue.answer_item(home, entry.item_id, text)
    return entry.run_id or None


def _build_entry(home: Home, item: WorkItem) -> InboxEntry:
    entry = InboxEntry(
        kind=QUESTION,
        since=item.updated_at,
        text=item.question,
        commands=(build_answer_command(item.id),),
        agent=item.owner_agent or "",
        task=item.kind,
        detail=item.notes,
        item_id=item.id,
    )
    run_id = json.loads(item.payload).get("run") if item.payload.startswith('{"') else None
    run = home.store().runs.get(run_id) if isinstance(run_id, str) else None
    if run is None:
        return entry
    return entry._replace(
        run_id=run.id, number=run.number, repository=run.spec.workspace, agent=run.agent, task=run.spec.task
    )
