"""Builds the notification for a run that ends or waits. Pure: the store writes it in the transaction of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.call_text import describe_effect
from jackline.domain.records import Notice
from jackline.domain.states import RunState, WaitReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Call, RunStatus, Spec

_MOST_TEXT = 200
_MOST_CALLS = 5


def build_notice(notice_id: str, run_id: str, spec: Spec, status: RunStatus, at: int) -> Notice | None:
    """Build the notice for a status; None for a run that continues, or that only waits for a retry."""
    if status.state in {RunState.QUEUED, RunState.RUNNING} or status.reason is WaitReason.RETRY:
        return None
    kind = f"run.waiting.{status.reason}" if status.state is RunState.WAITING else f"run.{status.state}"
    title = f"{status.agent or spec.agent}/{spec.task}: {status.reason or status.state}"
    # The store sets the head of the chain, which is known only after the last event is appended.
    return Notice(id=notice_id, run_id=run_id, kind=kind, title=title, body=status.detail, chain_head="", created_at=at)


def describe_doubts(calls: Sequence[Call], workspace: str = "") -> str:
    """Describe calls in doubt and the evidence about each, for the person who decides."""
    lines: list[str] = []
    for call in calls[:_MOST_CALLS]:
        reason = call.reason[:_MOST_TEXT] or "interrupted"
        lines.append(f"{describe_effect(call, workspace)[:_MOST_TEXT]} ({reason})")
    return "; ".join(lines)
