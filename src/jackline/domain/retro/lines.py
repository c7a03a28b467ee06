"""Rows of the retro: state changes, turns and checks of runs. Pure data."""

from __future__ import annotations

from jackline.named import NamedTuple, stored_as


class Move(NamedTuple):
    """A state change of a run."""

    run_id: str
    seq: int
    at: int
    kind: str  # run.claimed, run.waiting, run.succeeded, …
    reason: str = ""  # of run.waiting


@stored_as("step agent started_at ended_at failure")
class TurnLine(NamedTuple):
    """A turn in a report."""

    step: int
    agent: str
    started_at: int
    ended_at: int | None
    failure: str | None


@stored_as("step command started_at exit_code tree attempt")
class CheckLine(NamedTuple):
    """A check in a report."""

    step: int
    command: str
    started_at: int
    exit_code: int | None
    tree: str
    attempt: int = 1
