"""Converts runs and their records to JSON values, with the same keys in `run`, `list` and `show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.run_totals import compute_run_cost
from jackline.domain.states import Failure, RunState, WaitReason, exit_code
from jackline.formatting import format_iso
from jackline.named import stored_dict

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.store.models import RunSummary

_ACTIVE = frozenset({RunState.QUEUED, RunState.RUNNING})


def run_to_json(home: Home, run: Run) -> dict[str, Any]:
    """Convert a run for `run` and `show`: the keys of `list`, the exact cost, and the detail."""
    store = home.store()
    row = store.runs.find_matching(run.id, None)[0]
    cost = compute_run_cost(run, store.records.list_turns(run.id))
    return {
        **row_to_json(home, row, is_lost=bool(home.explain_loss(run))),
        "cost_usd": None if cost is None else cost / 1_000_000,
        "detail": run.status.detail,
    }


def row_to_json(home: Home, row: RunSummary, *, is_lost: bool = False) -> dict[str, Any]:
    """Convert a row of `list`. The exit code is null while the run is queued or running.

    A cost of zero becomes null: a row does not say whether the agent reports costs.
    """
    return {
        "id": row.id,
        "number": row.number,
        "state": row.state,
        "lost": is_lost,
        "reason": row.reason,
        "exit_code": row_exit_code(row),
        "failure": row.failure,
        "proof": row.proof,
        "phase": row.phase,
        "attempt": row.attempt,
        "iteration": row.iteration,
        "tokens": row.tokens,
        "cost_usd": row.usd_micros / 1_000_000 if row.usd_micros else None,
        "cost_estimated": row.usd_estimated > 0,
        "agent": row.agent,
        "task": row.task,
        "prompt": row.prompt,
        "repository": row.path,
        "folder": home.folder(row.id),
        "wake_at": format_iso(row.wake_at),
        "created_at": format_iso(row.created_at),
        "updated_at": format_iso(row.updated_at),
        "started_at": format_iso(row.started_at),
        "finished_at": format_iso(row.finished_at),
    }


def row_exit_code(row: RunSummary) -> int | None:
    """Return the exit code for the state of a run, or None while it is queued or running."""
    state = RunState(row.state)
    if state in _ACTIVE:
        return None
    reason = WaitReason(row.reason) if row.reason else None
    return exit_code(state, reason, Failure(row.failure) if row.failure else None)


def to_json_values(record: object) -> Any:  # noqa: ANN401 - any JSON value
    """Convert a record to JSON values; times become RFC 3339 text."""
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return {name: _convert_field(name, value) for name, value in stored_dict(record).items()}
    if isinstance(record, list | tuple):
        return [to_json_values(one) for one in record]
    if isinstance(record, dict):
        return {name: to_json_values(one) for name, one in record.items()}
    return record


def _convert_field(name: str, value: object) -> object:
    if isinstance(value, int) and (name == "at" or name.endswith("_at")):
        return format_iso(value)
    return to_json_values(value)
