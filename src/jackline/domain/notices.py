"""Builds the notification for a run that ends or waits. Pure: the store writes it in the transaction of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import hash_text
from jackline.domain.call_text import describe_effect
from jackline.domain.records import Notice, SubjectNotice
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import format_utc, join_some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.records import Call, RunStatus
    from jackline.domain.spec import Spec

SETTINGS_CHANGED = "settings.changed"
_MOST_TEXT = 200
_MOST_CALLS = 5
_SHOWS_TIME = frozenset({WaitReason.LIMIT, WaitReason.BUDGET})
SILENT_WAITS = frozenset({WaitReason.RETRY, WaitReason.CI})  # a run that waits for them has no notice
_ID_LENGTH = 32


def build_notice(notice_id: str, run_id: str, spec: Spec, status: RunStatus, at: int) -> Notice | None:
    """Build the notice for a status; None for a run that continues, or that waits for a retry or its pull request."""
    if status.state in {RunState.QUEUED, RunState.RUNNING} or status.reason in SILENT_WAITS:
        return None
    kind = f"run.waiting.{status.reason}" if status.state is RunState.WAITING else f"run.{status.state}"
    title = f"{status.agent or spec.agent}/{spec.task}: {status.reason or status.state}"
    # The store sets the head of the chain, which is known only after the last event is appended.
    body = status.detail
    if status.wake_at is not None and status.reason in _SHOWS_TIME:
        time = f"it can continue at {format_utc(status.wake_at)} UTC"
        body = f"{body}; {time}" if body else time
    if status.wake_at is not None and status.reason is WaitReason.APPROVAL:
        answer = f"without an answer until {format_utc(status.wake_at)} UTC it is: {spec.approval_answer}"
        body = f"{body}; {answer}" if body else answer
    return Notice(id=notice_id, run_id=run_id, kind=kind, title=title, body=body, chain_head="", created_at=at)


def build_log_in_notice(health: AgentHealth, run_id: str) -> SubjectNotice:
    """Build the notice for an agent that could not log in, about a run that continues with another agent."""
    return SubjectNotice(
        id=hash_text(f"log_in:{health.agent}:{health.at}")[:_ID_LENGTH],
        subject="home",
        kind="log_in",
        title=f"{health.agent} is not logged in",
        body=f"{health.detail}\nrun {run_id} continues with another agent; see `jackline agents`",
        created_at=health.at,
        labels=health.agent,
    )


def build_settings_notice(files: Sequence[str], runs: Sequence[str], at: int) -> SubjectNotice:
    """Build the notice for files of the user that changed while a run lived."""
    named = join_some(files, _MOST_CALLS)
    while_running = f" during run {', '.join(runs[:_MOST_CALLS])}" if runs else ""
    return SubjectNotice(
        id=hash_text(f"settings.changed:{named}:{at}")[:_ID_LENGTH],
        subject="home",
        kind=SETTINGS_CHANGED,
        title="your own files were changed",
        body=f"changed{while_running}: {named}\nno run starts until you have reviewed this: jackline trust",
        created_at=at,
    )


def describe_doubts(calls: Sequence[Call], workspace: str = "") -> str:
    """Describe calls in doubt and the evidence about each, for the person who decides."""
    lines: list[str] = []
    for call in calls[:_MOST_CALLS]:
        reason = call.reason[:_MOST_TEXT] or "interrupted"
        lines.append(f"{describe_effect(call, workspace)[:_MOST_TEXT]} ({reason})")
    return "; ".join(lines)
