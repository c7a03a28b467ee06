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
    Failure.LIMIT: 60 * _MINUTE_MS,
    Failure.BILLING: 60 * _MINUTE_MS,
    Failure.AUTHENTICATION: 15 * _MINUTE_MS,
    Failure.OVERLOADED: 5 * _MINUTE_MS,
    Failure.CONNECTIVITY: 2 * _MINUTE_MS,
}
_FIXED_BY_HAND = frozenset({Failure.AUTHENTICATION, Failure.BILLING})


@stored_as("agent failure detail until at")
class AgentHealth(NamedTuple):
    """The state of an agent after its last turn; `until` is 0 if it is healthy."""

    agent: str
    failure: str = ""
    detail: str = ""
    until: int = 0
    at: int = 0


def build_health(agent: str, outcome: Outcome, at: int) -> AgentHealth | None:
    """Derive the agent's health from a turn's outcome; None if the outcome concerns only this turn."""
    if outcome.failure is None:
        return AgentHealth(agent, at=at)
    if outcome.failure not in _REST_MS:
        return None
    reset = outcome.resets_at
    until = reset if reset is not None and reset > at else at + _REST_MS[outcome.failure]
    return AgentHealth(agent=agent, failure=str(outcome.failure), detail=outcome.detail, until=until, at=at)


def find_resting_agents(known: Iterable[AgentHealth], at: int, named: str = "") -> dict[str, int]:
    """The agents not to use now, each with the time until when.

    The agent `named` by a person is tried even after a refusal: they may have logged in, or paid, meanwhile.
    """
    resting_now = (one for one in known if one.until > at)
    return {one.agent: one.until for one in resting_now if one.agent != named or one.failure not in _FIXED_BY_HAND}
