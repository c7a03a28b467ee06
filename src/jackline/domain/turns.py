"""What the turns of a run tell together: what they cost, and which sessions were lost on the way. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.records import Manner
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Run, Spec, Turn


def run_cost(run: Run, turns: Sequence[Turn]) -> int | None:
    """Millionths of a dollar; None if nothing was told and an agent worked on it that tells no cost."""
    told = run.life.spent.usd_micros
    return told if told or all(_tells_cost(run.spec, turn) for turn in turns) else None


def turn_cost(spec: Spec, turn: Turn) -> int | None:
    """The same of one turn."""
    told = turn.spent.usd_micros
    return told if told or _tells_cost(spec, turn) else None


def lost_sessions(turns: Sequence[Turn]) -> list[str]:
    """One line for each session that its agent did not know any more.

    After any other mistake of an agent the attempt is over, so a fresh session in the same one tells the loss.
    """
    return [
        f"session {turn.session} was not known to {turn.agent}; a fresh one was begun"
        for turn, following in pairwise(turns)
        if turn.session and turn.failure == Failure.AGENT_ERROR
        if (turn.agent, turn.attempt) == (following.agent, following.attempt) and turn.session != following.session
    ]


def _tells_cost(spec: Spec, turn: Turn) -> bool:
    return spec.manners.get(turn.agent, Manner()).tells_cost
