"""What people are told when a run ends or waits. Pure: the store writes it in the same transaction as the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.records import Notice
from jackline.domain.states import RunState, WaitReason

if TYPE_CHECKING:
    from jackline.domain.records import Life, Spec


def notice_of(notice_id: str, run_id: str, spec: Spec, life: Life, at: int) -> Notice | None:
    """The notice of a run that stands so; None while it goes on, and for a short retry, which is not news."""
    if life.state in {RunState.QUEUED, RunState.RUNNING} or life.reason is WaitReason.RETRY:
        return None
    kind = f"run.waiting.{life.reason}" if life.state is RunState.WAITING else f"run.{life.state}"
    title = f"{life.agent or spec.agent}/{spec.task}: {life.reason or life.state}"
    # The store puts the chain's head in, because it is known only once the last event has its place.
    return Notice(notice_id, run_id, kind, title, life.detail, "", at)
