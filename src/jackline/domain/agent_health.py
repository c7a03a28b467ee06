"""The health of an agent after its last turn: whether it rests, why and until when. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Failure
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.outcome import Outcome

_MINUTE_MS = 60_000
# How long an agent rests if no reset time is known. One more try is cheap, one every minute all night is not.
_REST_MS = {
    Failure.LIMIT: 15 * _MINUTE_MS,
    Failure.BILLING: 60 * _MINUTE_MS,
    Failure.AUTHENTICATION: 15 * _MINUTE_MS,
    Failure.OVERLOADED: 5 * _MINUTE_MS,
    Failure.CONNECTIVITY: 2 * _MINUTE_MS,
}
_LONGEST_REST_MS = 240 * _MINUTE_MS  # of an agent that still has a limit each time it is tried
_FIXED_BY_HAND = frozenset({Failure.AUTHENTICATION, Failure.BILLING})


@stored_as("agent failure detail until at")
class AgentHealth(NamedTuple):
    """The state of an agent after its last turn; `until` is 0 if it is healthy."""

    agent: str
    failure: str = ""
    detail: str = ""
    until: int = 0
    at: int = 0


def build_health(
    agent: str, outcome: Outcome, at: int, known: AgentHealth | None = None, started_at: int | None = None
) -> AgentHealth | None:
    """Derive the agent's health from the outcome of a turn; None if it says nothing new about the agent.

    `known` is the agent's health so far. A turn that began before another one met a limit shows nothing about it.
    """
    if outcome.failure is None:
        is_older = started_at is not None and known is not None and known.at >= started_at
        return None if is_older and is_limited(known) else AgentHealth(agent, at=at)
    if outcome.failure not in _REST_MS:
        return None
    reset = outcome.resets_at
    until = reset if reset is not None and reset > at else _estimate_rest(outcome.failure, at, known)
    return AgentHealth(agent=agent, failure=str(outcome.failure), detail=outcome.detail, until=until, at=at)


def _estimate_rest(failure: Failure, at: int, known: AgentHealth | None) -> int:
    """Until when an agent rests without a known reset time: twice as long if it still has the limit after a rest."""
    if failure is not Failure.LIMIT or known is None or not is_limited(known):
        return at + _REST_MS[failure]
    if known.until > at:  # a person did not wait for it
        return known.until
    return at + min(_LONGEST_REST_MS, max(_REST_MS[failure], 2 * (known.until - known.at)))


def find_limit_resets(known: Iterable[AgentHealth], at: int) -> dict[str, int]:
    """The agents that rest for a limit now, each with the time of its reset."""
    return {one.agent: one.until for one in known if is_limited(one) and one.until > at}


def is_limited(health: AgentHealth | None) -> bool:
    """Whether the agent's last turn met a limit; the limit may be over meanwhile."""
    return health is not None and health.failure == Failure.LIMIT


def find_resting_agents(known: Iterable[AgentHealth], at: int, named: str = "") -> dict[str, int]:
    """The agents not to use now, each with the time until when.

    The agent `named` by a person is tried even after a refusal: they may have logged in, or paid, meanwhile.
    """
    resting_now = (one for one in known if one.until > at)
    return {one.agent: one.until for one in resting_now if one.agent != named or one.failure not in _FIXED_BY_HAND}
