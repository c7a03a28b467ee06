"""Questions of a run's agent to a person: work items whose payload names the run. The run waits for their answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.states import WorkStatus
from jackline.features.work.item_queries import build_item

if TYPE_CHECKING:
    from jackline.features.work.work_item import WorkItem
    from jackline.store.driver import Statements
    from jackline.store.store import Store

KIND = "question"
_TITLE = "A person answered your questions:"


def find_asking_run(item: WorkItem) -> str:
    """The id of the run whose agent asks; empty if the item is not a question of a run."""
    payload = json.loads(item.payload) if item.kind == KIND else None
    run_id = payload.get("run") if isinstance(payload, dict) else None
    return run_id if isinstance(run_id, str) else ""


def list_open_texts(statements: Statements, run_id: str) -> list[str]:
    """The questions of the run's agent that have no answer, oldest first."""
    return [item.question for item in _list_questions(statements, run_id) if item.status is WorkStatus.WAITING_HUMAN]


def build_answers_section(store: Store, run_id: str) -> tuple[str, list[str]]:
    """The answers to the questions of the run's agent, for its next prompt."""
    return _TITLE, [_format_answer(item) for item in _read_answered(store, run_id)]


def list_unread_answers(store: Store, run_id: str) -> list[str]:
    """The answers that the run's agent has neither asked for nor got in a prompt."""
    unread = [item for item in _read_answered(store, run_id) if item.status is WorkStatus.PENDING]
    prompts = [turn.prompt for turn in store.records.list_turns(run_id)] if unread else []
    lines = (_format_answer(item) for item in unread)
    return [line for line in lines if not any(line in prompt for prompt in prompts)]


def _read_answered(store: Store, run_id: str) -> list[WorkItem]:
    """The newest first: a section of a prompt leaves out what is too much."""
    items = store.driver.read(lambda statements: _list_questions(statements, run_id))
    return [item for item in reversed(items) if item.answer]


def _format_answer(item: WorkItem) -> str:
    return f"{item.question} Answer: {item.answer}"


def _list_questions(statements: Statements, run_id: str) -> list[WorkItem]:
    rows = statements.all("questions_that_mention", {"kind": KIND, "text": f"%{run_id}%"})
    items = (build_item(row) for row in rows)
    return [item for item in items if find_asking_run(item) == run_id]
