"""Builds the notices about work items: one that waits for a person, and one that used up its attempts. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import hash_text
from jackline.domain.records import SubjectNotice
from jackline.formatting import format_command, shorten_text

if TYPE_CHECKING:
    from jackline.domain.spec import Spec
    from jackline.features.work.work_item import WorkItem

_TITLE_COLUMNS = 100
_ID_LENGTH = 32


def build_question_notice(item: WorkItem, run_id: str, spec: Spec | None, at: int) -> SubjectNotice:
    """The notice of an item that waits for a person; `run_id` and `spec` are those of the run whose agent asks."""
    question = " ".join(item.question.split())
    asks = f"{spec.agent}/{spec.task} asks" if spec is not None else f"{item.kind} {item.id} asks"
    answer = ("answer", run_id, "TEXT") if run_id else ("work", "answer", item.id, "TEXT")
    lines = [item.question, format_command("jackline", *answer)]
    labels = [item.kind]
    if spec is not None:
        lines.append(f"agent {spec.agent} · task {spec.task} · run {run_id}")
        labels += [spec.task, spec.agent, *spec.labels]
    return _build_notice(item, "question", f"{asks}: {question}", lines, labels, at)


def build_death_notice(item: WorkItem, at: int) -> SubjectNotice:
    """The notice of an item that has used up its attempts."""
    lines = [f"work item {item.id} of kind {item.kind} failed after {item.attempts} of {item.max_attempts} attempts"]
    lines += [item.notes] if item.notes else []
    lines.append(format_command("jackline", "work", "get", item.id))
    return _build_notice(item, "work.failed", f"{item.kind} {item.id}: no attempts left", lines, [item.kind], at)


def _build_notice(item: WorkItem, kind: str, title: str, lines: list[str], labels: list[str], at: int) -> SubjectNotice:
    return SubjectNotice(
        id=hash_text(f"work:{item.id}:{item.event_seq}")[:_ID_LENGTH],  # one for each event of an item
        subject=f"work:{item.id}",
        kind=kind,
        title=shorten_text(title, _TITLE_COLUMNS),
        body="\n".join(lines),
        created_at=at,
        labels=" ".join(label for label in labels if " " not in label),
    )
