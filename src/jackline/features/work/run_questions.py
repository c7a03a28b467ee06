"""Questions of a run's agent to a person: work items whose payload names the run. The run waits for their answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.states import WorkStatus
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.work_item import ItemQuery

if TYPE_CHECKING:
    from jackline.features.work.work_item import WorkItem
    from jackline.store.store import Store

KIND = "question"
_MOST = 1_000
_TITLE = "A person answered your questions:"


def find_asking_run(item: WorkItem) -> str:
    """The id of the run whose agent asks; empty if the item is not a question of a run."""
    payload = json.loads(item.payload) if item.kind == KIND else None
    run_id = payload.get("run") if isinstance(payload, dict) else None
    return run_id if isinstance(run_id, str) else ""


def list_open_texts(store: Store, run_id: str) -> list[str]:
    """The questions of the run's agent that have no answer, oldest first."""
    query = ItemQuery(statuses=(str(WorkStatus.WAITING_HUMAN),), kinds=(KIND,), limit=_MOST)
    items = [item for item in WorkItems(store).list_page(query) if find_asking_run(item) == run_id]
    return [item.question for item in reversed(items)]


def build_answers_section(store: Store, run_id: str) -> tuple[str, list[str]]:
    """The answers to the questions of the run's agent, for its next prompt."""
    query = ItemQuery(kinds=(KIND,), limit=_MOST)
    items = [item for item in WorkItems(store).list_page(query) if item.answer and find_asking_run(item) == run_id]
    return _TITLE, [f"{item.question} Answer: {item.answer}" for item in reversed(items)]
