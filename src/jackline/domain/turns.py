"""Summaries over the turns of a run: their cost, and the sessions that were lost. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.records import Manner
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Run, Spec, Turn


def run_cost(run: Run, turns: Sequence[Turn]) -> int | None:
    """The cost in millionths of a dollar; None if none was reported and one of its agents reports no cost."""
    cost = run.life.spent.usd_micros
    return cost if cost or all(_reports_cost(run.spec, turn) for turn in turns) else None


def turn_cost(spec: Spec, turn: Turn) -> int | None:
    """The cost of one turn in millionths of a dollar; None if its agent reports no cost."""
    cost = turn.spent.usd_micros
    return cost if cost or _reports_cost(spec, turn) else None


def lost_sessions(turns: Sequence[Turn]) -> list[str]:
    """One line for each session that its agent no longer knew.

    Any other agent error ends the attempt, so a fresh session in the same attempt means that the old one was lost.
    """
    return [
        f"session {turn.session} was not known to {turn.agent}; a fresh one was begun"
        for turn, following in pairwise(turns)
        if turn.session and turn.failure == Failure.AGENT_ERROR
        if (turn.agent, turn.attempt) == (following.agent, following.attempt) and turn.session != following.session
    ]


def _reports_cost(spec: Spec, turn: Turn) -> bool:
    return spec.manners.get(turn.agent, Manner()).tells_cost
