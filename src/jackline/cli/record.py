"""Runs and their records as JSON values: the same names in `run`, `list` and `show`. It prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.states import Failure, RunState, WaitReason, exit_code
from jackline.domain.turns import run_cost
from jackline.formatting import format_iso
from jackline.named import stored_dict

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.store.contract import RunRow

_GOING = frozenset({RunState.QUEUED, RunState.RUNNING})


def run_record(home: Home, run: Run) -> dict[str, Any]:
    """A run as `run` and `show` tell it: its line of the list, and the detail."""
    store = home.store()
    row = store.matching_runs(run.id, None)[0]
    cost = run_cost(run, store.turns(run.id))
    return {
        **row_record(home, row),
        "cost_usd": None if cost is None else cost / 1_000_000,
        "detail": run.life.detail,
    }


def row_record(home: Home, row: RunRow) -> dict[str, Any]:
    """A line of the list; the exit code is that of a command that leaves the run so, none while it goes.

    A list is cheap and does not know who would have told a cost: of a run without one it says none.
    """
    return {
        "id": row.id,
        "number": row.number,
        "state": row.state,
        "reason": row.reason,
        "exit_code": row_exit_code(row),
        "failure": row.failure,
        "proof": row.proof,
        "phase": row.phase,
        "attempt": row.attempt,
        "iteration": row.iteration,
        "tokens": row.tokens,
        "cost_usd": row.usd_micros / 1_000_000 if row.usd_micros else None,
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


def row_exit_code(row: RunRow) -> int | None:
    """None while the run is queued or running."""
    state = RunState(row.state)
    if state in _GOING:
        return None
    reason = WaitReason(row.reason) if row.reason else None
    return exit_code(state, reason, Failure(row.failure) if row.failure else None)


def values(record: object) -> Any:  # noqa: ANN401 - any JSON value
    """A record as JSON values, with times that programs can read."""
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return {name: _timed(name, value) for name, value in stored_dict(record).items()}
    if isinstance(record, list | tuple):
        return [values(one) for one in record]
    if isinstance(record, dict):
        return {name: values(one) for name, one in record.items()}
    return record


def _timed(name: str, value: object) -> object:
    is_time = (name == "at" or name.endswith("_at")) and isinstance(value, int)
    return format_iso(value) if is_time and isinstance(value, int) else values(value)
