"""The transition tables of runs, calls and work items. No other module decides which change is allowed. Pure."""

from __future__ import annotations

from typing import TypeVar

from jackline.domain.states import CallState as C
from jackline.domain.states import RunState as R
from jackline.domain.states import WorkStatus as W

S = TypeVar("S")

RUN: dict[tuple[R, str], R] = {
    (R.QUEUED, "claim"): R.RUNNING,
    (R.WAITING, "claim"): R.RUNNING,
    (R.RUNNING, "claim"): R.RUNNING,  # a takeover: the lease expired, or its owner is known to be dead
    (R.FAILED, "claim"): R.RUNNING,  # `resume` reopens a failed run as a new attempt
    (R.RUNNING, "succeed"): R.SUCCEEDED,
    (R.RUNNING, "fail"): R.FAILED,
    (R.RUNNING, "park"): R.WAITING,
    (R.WAITING, "wake"): R.QUEUED,
    (R.QUEUED, "cancel"): R.CANCELLED,
    (R.WAITING, "cancel"): R.CANCELLED,
    (R.RUNNING, "cancel"): R.CANCELLED,
}

CALL: dict[tuple[C, str], C] = {
    (C.PREPARED, "succeed"): C.DONE,
    (C.PREPARED, "fail"): C.FAILED,
    (C.PREPARED, "deny"): C.DENIED,
    (C.PREPARED, "doubt"): C.IN_DOUBT,
    (C.PREPARED, "abandon"): C.ABANDONED,
    (C.IN_DOUBT, "doubt"): C.IN_DOUBT,  # a probe could not decide: its evidence is recorded
    (C.IN_DOUBT, "happened"): C.DONE,
    (C.IN_DOUBT, "did_not"): C.VOID,
    (C.IN_DOUBT, "abandon"): C.ABANDONED,
}

WORK: dict[tuple[W, str], W] = {
    (W.PENDING, "claim"): W.IN_FLIGHT,
    (W.IN_FLIGHT, "claim"): W.IN_FLIGHT,  # a takeover: the lease expired
    (W.IN_FLIGHT, "release"): W.PENDING,
    (W.IN_FLIGHT, "bury"): W.FAILED,  # the last attempt was released, or its lease expired: a dead letter
    (W.PENDING, "wait"): W.WAITING_HUMAN,
    (W.IN_FLIGHT, "wait"): W.WAITING_HUMAN,
    (W.WAITING_HUMAN, "answer"): W.PENDING,
    # By the worker that claimed it, or by a person who cleans up the queue.
    **{
        (before, change): after
        for before in (W.PENDING, W.IN_FLIGHT, W.WAITING_HUMAN)
        for change, after in (("succeed", W.DONE), ("fail", W.FAILED), ("cancel", W.CANCELLED))
    },
}


class TransitionRefused(ValueError):
    """The transition table does not allow the change."""


def next_run(state: R, change: str) -> R:
    """Return the state after the change, or raise TransitionRefused."""
    return _next(RUN, state, change)


def next_call(state: C, change: str) -> C:
    """Return the state after the change, or raise TransitionRefused."""
    return _next(CALL, state, change)


def next_work(status: W, change: str) -> W:
    """Return the status after the change, or raise TransitionRefused."""
    return _next(WORK, status, change)


def run_sources(change: str) -> tuple[R, ...]:
    """Return the states that allow the change, for the comparison in a guarded UPDATE."""
    return tuple(state for state, name in RUN if name == change)


def call_sources(change: str) -> tuple[C, ...]:
    """Return the states that allow the change, for the comparison in a guarded UPDATE."""
    return tuple(state for state, name in CALL if name == change)


def _next(table: dict[tuple[S, str], S], state: S, change: str) -> S:
    found = table.get((state, change))
    if found is None:
        message = f"{state} does not allow '{change}'"
        raise TransitionRefused(message)
    return found
