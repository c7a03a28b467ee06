"""manifest.json: a run in the predecessor's format, with jackline's own fields under `metadata`.

The mapping of states is in docs/run-folder.md. It reads the store and never writes to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.domain.records import Run, Turn
from jackline.domain.run_totals import NO_CALLS, Tally, compute_run_cost
from jackline.domain.spec import CLAUDEX, CLAUDEX_AGENTS, NO_REVIEW, Spec
from jackline.domain.states import Phase, RunState, WaitReason
from jackline.errors import UsageError
from jackline.exports import record_json
from jackline.exports.record_json import ZERO_TIME
from jackline.formatting import format_rfc3339, to_datetime, to_usd
from jackline.named import NamedTuple, stored_as, stored_dict

if TYPE_CHECKING:
    from jackline.store.store import Store

FILE = "manifest.json"
DONE_SIGNAL = "DONE"  # for the end of a turn, if the run asks for no signal
COMPLETE = frozenset({"completed", "failed", "cancelled"})
_OMIT_EMPTY = frozenset(
    {
        "claude_session_id", "codex_session_id", "worktree_path", "tmux_session", "proof_command",
        "completed_at", "error", "metadata",
    }
)  # fmt: skip
_STATES = {
    RunState.QUEUED: "submitted",
    RunState.RUNNING: "working",
    RunState.WAITING: "input-required",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
}
# These waits end without any input.
_WAITS_WITHOUT_INPUT = frozenset({WaitReason.LIMIT, WaitReason.RETRY, WaitReason.DEPENDENCY, WaitReason.CI})


@stored_as(
    "id repo_path repo_id prompt state primary_agent review_mode max_iterations current_iteration claude_session_id "
    "codex_session_id worktree_path tmux_session proof_command done_signal created_at updated_at completed_at error "
    "metadata"
)
class Manifest(NamedTuple):
    """The contents of a manifest.json; a missing field has Go's zero value."""

    id: int = 0
    repo_path: str = ""
    repo_id: str = ""
    prompt: str = ""
    state: str = ""
    primary_agent: str = ""
    review_mode: str = ""
    max_iterations: int = 0
    current_iteration: int = 0
    claude_session_id: str = ""
    codex_session_id: str = ""
    worktree_path: str = ""
    tmux_session: str = ""
    proof_command: str = ""
    done_signal: str = ""
    created_at: datetime = ZERO_TIME
    updated_at: datetime = ZERO_TIME
    completed_at: datetime | None = None
    error: str = ""
    metadata: Mapping[str, Any] = NOTHING

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended."""
        return self.state in COMPLETE

    @property
    def is_single_agent(self) -> bool:
        """Whether no second agent reviews the work."""
        return self.review_mode in {"", NO_REVIEW}

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values in the predecessor's order, without empty optional fields."""
        return record_json.dump_record(self, _OMIT_EMPTY)

    def to_json(self) -> str:
        """Return the text of the file."""
        return record_json.encode_json(self.to_dict(), indent=2).decode()


def manifest_state(state: RunState, reason: WaitReason | None = None, phase: Phase | None = None) -> str:
    """Return the predecessor's name for a state."""
    if state is RunState.WAITING and reason in _WAITS_WITHOUT_INPUT:
        return _STATES[RunState.QUEUED]
    if state is RunState.RUNNING and phase is Phase.REVIEWING:
        return "reviewing"
    return _STATES[state]


def load_run_manifest(store: Store, run: Run) -> Manifest:
    """Build the manifest of a run from the store."""
    run = store.wakeups.adjust_wake_time(run) if run.status.wake_at else run
    rows = store.runs.find_matching(run.id, None, 1)
    path = rows[0].path if rows else run.spec.workspace
    terminal = store.records.get_tmux_session(run.id)
    built = build_manifest(
        run, path, store.records.get_sessions(run.id), store.records.list_turns(run.id), store.calls.tally(run.id)
    )
    return built._replace(tmux_session=terminal.session if terminal else "")


def build_manifest(
    run: Run, path: str, sessions: Mapping[str, str], turns: Sequence[Turn] = (), tally: Tally = NO_CALLS
) -> Manifest:
    """Build the manifest from a run and its records."""
    status, spec = run.status, run.spec
    return Manifest(
        id=run.number,
        repo_path=path,
        repo_id=run.repository,
        prompt=spec.prompt,
        state=manifest_state(status.state, status.reason, status.phase),
        primary_agent=spec.agent,
        review_mode=format_review_mode(spec),
        max_iterations=spec.limits.iterations or 0,
        current_iteration=status.iteration,
        claude_session_id=sessions.get("claude", ""),
        codex_session_id=sessions.get("codex", ""),
        worktree_path=spec.worktree.path,
        proof_command=spec.proof,
        done_signal=spec.done_signal or DONE_SIGNAL,
        created_at=to_datetime(run.created_at),
        updated_at=to_datetime(run.updated_at),
        completed_at=to_datetime(run.finished_at),
        error=format_failure(run),
        metadata={**_build_metadata(run, sessions, turns), "completion": stored_dict(tally)},
    )


def format_review_mode(spec: Spec) -> str:
    """Return who reviews, in the predecessor's words; agents that it did not know by their names."""
    if sorted(spec.review) == sorted(CLAUDEX_AGENTS):
        return CLAUDEX
    return ",".join(spec.review) or NO_REVIEW


def format_failure(run: Run) -> str:
    """Return why a run failed; empty if it did not."""
    status = run.status
    if status.state is not RunState.FAILED:
        return ""
    return ": ".join(part for part in (status.failure, status.detail) if part) or "failed"


def load_manifest(path: str) -> Manifest:
    """Load a manifest from a file or a run folder; raise UsageError if there is none."""
    file = os.path.join(path, FILE) if os.path.isdir(path) else path
    try:
        with open(file, "rb") as source:
            return Manifest(**record_json.load_fields(Manifest, record_json.decode_object(source.read())))
    except OSError as error:
        message = f"{file} cannot be read ({error.strerror}): name a manifest.json or a run folder"
        raise UsageError(message) from error
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        message = f"{file} is not a manifest ({reason}): `jackline export RUN` writes a run's manifest again"
        raise UsageError(message) from error


def _build_metadata(run: Run, sessions: Mapping[str, str], turns: Sequence[Turn]) -> dict[str, Any]:
    """Return the fields that the predecessor did not have; unknown ones are left out."""
    status, spent = run.status, run.status.spent
    values = {
        "run_id": run.id,
        "lineage": run.lineage,
        "parent": run.parent,
        "forked_at": run.forked_at,
        "task": run.spec.task,
        "workspace": run.spec.workspace,
        "jackline_state": status.state.value,
        "reason": status.reason,
        "wake_at": format_rfc3339(to_datetime(status.wake_at)) if status.wake_at is not None else None,
        "phase": status.phase,
        "failure": status.failure,
        "detail": status.detail or None,
        "proof": status.proof.value,
        "tree": status.tree or None,
        "review_requires": run.spec.review_mode if run.spec.review else None,
        "review_round": status.review_round or None,
        "attempt": status.attempt,
        "step": status.step,
        "turn": status.turn,
        "cancel_requested": status.cancel_requested or None,
        "sessions": dict(sessions) or None,
        "tokens_input": spent.tokens_input,
        "tokens_output": spent.tokens_output,
        "tokens_cached": spent.tokens_cached,
        "cost_usd": to_usd(compute_run_cost(run, turns)),
        "cost_estimated": spent.usd_estimated > 0 or None,
        "worked_seconds": spent.wall_ms / 1000,
        "chain_head": run.chain_head,
    }
    return {name: value for name, value in values.items() if value is not None}
