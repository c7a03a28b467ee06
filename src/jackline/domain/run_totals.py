"""Summaries of a run: its cost, the sessions that were lost, and the outcomes of its calls in one line. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.spec import AgentOptions
from jackline.domain.states import Failure, Role
from jackline.formatting import pluralize
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from jackline.domain.records import Attempt, Run, Turn
    from jackline.domain.spec import Spec

LOST = "lost"  # the outcome of an attempt that ended without reporting one


def compute_run_cost(run: Run, turns: Sequence[Turn]) -> int | None:
    """The cost in millionths of a dollar; None if none was reported and one of its agents reports no cost."""
    cost = run.status.spent.usd_micros
    return cost if cost or all(_reports_cost(run.spec, turn) for turn in turns) else None


def compute_turn_cost(spec: Spec, turn: Turn) -> int | None:
    """The cost of one turn in millionths of a dollar; None if its agent reports no cost."""
    cost = turn.spent.usd_micros
    return cost if cost or _reports_cost(spec, turn) else None


def find_last_message(turns: Sequence[Turn]) -> str:
    """The last message of the agent that works, of whichever turn has one; else empty."""
    worked = (turn for turn in reversed(turns) if turn.role != Role.REVIEW)
    return next((turn.last_message for turn in worked if turn.last_message), "")


def describe_lost_sessions(turns: Sequence[Turn]) -> list[str]:
    """One line for each session that its agent no longer knew.

    Any other agent error ends the attempt, so a fresh session in the same attempt means that the old one was lost.
    """
    return [
        f"session {turn.session} was not known to {turn.agent}; a fresh one was begun"
        for turn, following in pairwise(turns)
        if turn.session and turn.failure == Failure.AGENT_ERROR
        if (turn.agent, turn.attempt, turn.role) == (following.agent, following.attempt, following.role)
        and turn.session != following.session
    ]


def count_idle_turns(turns: Sequence[Turn], attempts: Sequence[Attempt], with_calls: Container[int]) -> int:
    """How many of the last turns ended by the idle timeout since the agent made a call or wrote a message.

    `with_calls` are the numbers of the turns with calls. An attempt that was lost counts together with the next one; an
    attempt that ended in any other way was continued by a person, or after a wait.
    """
    lost = {attempt.token for attempt in attempts if attempt.outcome == LOST}
    first, count = max(attempt.token for attempt in attempts), 0
    while first - 1 in lost:
        first -= 1
    for turn in reversed(turns):
        if turn.attempt < first or turn.failure not in {Failure.IDLE, Failure.CRASHED}:
            break
        count += turn.failure == Failure.IDLE
        if turn.last_message or turn.number in with_calls:
            break
    return count


def _reports_cost(spec: Spec, turn: Turn) -> bool:
    return spec.agent_options.get(turn.agent, AgentOptions()).tells_cost


# --- outcomes of calls


@stored_as("calls tools effects failed replayed abandoned denied asked in_doubt receipts steps")
class Tally(NamedTuple):
    """The outcomes of all calls of a run, over all attempts."""

    calls: int = 0  # requested
    tools: int = 0  # allowed
    effects: int = 0  # allowed effects
    failed: int = 0
    replayed: int = 0  # answered with a stored result, or made again after an interruption or a failure
    abandoned: int = 0
    denied: int = 0
    asked: int = 0  # needed approval
    in_doubt: int = 0
    receipts: int = 0
    steps: int = 0


NO_CALLS = Tally()


def completion(tally: Tally) -> str:
    """Summarize the calls in one line; outcomes that did not occur are left out."""
    outcomes = (
        (tally.failed, "failed"),
        (tally.replayed, "replayed"),
        (tally.abandoned, "abandoned"),
        (tally.denied, "denied"),
        (tally.asked, "needed approval"),
        (tally.in_doubt, "in doubt"),
    )
    calls = pluralize(tally.tools, "tool call") if tally.tools else "no tool calls"
    steps = [pluralize(tally.steps, "step")] if tally.steps else []
    return ", ".join([calls, *(f"{count} {word}" for count, word in outcomes if count), *steps])
