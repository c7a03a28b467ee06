"""The transition tables of a run, a call and a work item. Nothing else in jackline decides which change is allowed."""

from __future__ import annotations

from typing import TypeVar

from jackline.domain.states import CallState as C
from jackline.domain.states import RunState as R
from jackline.domain.states import WorkStatus as W

S = TypeVar("S")

RUN: dict[tuple[R, str], R] = {
    (R.QUEUED, "claim"): R.RUNNING,
    (R.WAITING, "claim"): R.RUNNING,
    (R.RUNNING, "claim"): R.RUNNING,  # a takeover: the lease ran out, or its holder is known to be dead
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
    (C.IN_DOUBT, "doubt"): C.IN_DOUBT,  # a probe looked and does not know: its evidence is written down
    (C.IN_DOUBT, "happened"): C.DONE,
    (C.IN_DOUBT, "did_not"): C.VOID,
    (C.IN_DOUBT, "abandon"): C.ABANDONED,
}

WORK: dict[tuple[W, str], W] = {
    (W.PENDING, "claim"): W.IN_FLIGHT,
    (W.IN_FLIGHT, "claim"): W.IN_FLIGHT,  # a takeover: the lease ran out
    (W.IN_FLIGHT, "release"): W.PENDING,
    (W.IN_FLIGHT, "bury"): W.FAILED,  # the last attempt was given back, or its lease ran out: a dead letter
    (W.PENDING, "wait"): W.WAITING_HUMAN,
    (W.IN_FLIGHT, "wait"): W.WAITING_HUMAN,
    (W.WAITING_HUMAN, "answer"): W.PENDING,
    # Whoever holds it, or a person who tidies the queue.
    **{
        (before, change): after
        for before in (W.PENDING, W.IN_FLIGHT, W.WAITING_HUMAN)
        for change, after in (("succeed", W.DONE), ("fail", W.FAILED), ("cancel", W.CANCELLED))
    },
}


class TransitionRefused(ValueError):
    """A change that the table does not know."""


def next_run(state: R, change: str) -> R:
    """The state after the change, or TransitionRefused."""
    return _next(RUN, state, change)


def next_call(state: C, change: str) -> C:
    """The state after the change, or TransitionRefused."""
    return _next(CALL, state, change)


def next_work(status: W, change: str) -> W:
    """The status after the change, or TransitionRefused."""
    return _next(WORK, status, change)


def run_sources(change: str) -> tuple[R, ...]:
    """The states from which the change is allowed: what a guarded UPDATE compares with."""
    return tuple(state for state, name in RUN if name == change)


def call_sources(change: str) -> tuple[C, ...]:
    """The states from which the change is allowed: what a guarded UPDATE compares with."""
    return tuple(state for state, name in CALL if name == change)


def _next(table: dict[tuple[S, str], S], state: S, change: str) -> S:
    found = table.get((state, change))
    if found is None:
        message = f"{state} does not allow '{change}'"
        raise TransitionRefused(message)
    return found
