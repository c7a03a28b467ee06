"""What people are told when a run ends or waits. Pure: the store writes it in the same transaction as the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.records import Notice
from jackline.domain.states import RunState, WaitReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Call, RunStatus, Spec

_SHOWN = 200
_MOST_SHOWN = 5


def notice_of(notice_id: str, run_id: str, spec: Spec, life: RunStatus, at: int) -> Notice | None:
    """The notice of a run that stands so; None while it goes on, and for a short retry, which is not news."""
    if life.state in {RunState.QUEUED, RunState.RUNNING} or life.reason is WaitReason.RETRY:
        return None
    kind = f"run.waiting.{life.reason}" if life.state is RunState.WAITING else f"run.{life.state}"
    title = f"{life.agent or spec.agent}/{spec.task}: {life.reason or life.state}"
    # The store puts the chain's head in, because it is known only once the last event has its place.
    return Notice(id=notice_id, run_id=run_id, kind=kind, title=title, body=life.detail, chain_head="", created_at=at)


def evidence_of(doubts: Sequence[Call]) -> str:
    """The calls in doubt and what was found out about each, for the person who has to judge them."""
    return "; ".join(_doubt(call) for call in doubts[:_MOST_SHOWN])


def _doubt(call: Call) -> str:
    touched = f" → {call.target}" if call.target else ""
    return f"{call.tool}{touched} {call.input[:_SHOWN]} ({call.reason[:_SHOWN] or 'cut off'})"
