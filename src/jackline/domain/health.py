"""What is known of an agent's health from its last turn: whether it rests, why and until when. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Failure
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.outcome import Outcome

_MINUTE_MS = 60_000
# How long an agent is left alone where nobody named a time. Another try is cheap, one every minute all night is not.
_REST_MS = {
    Failure.LIMIT: 60 * _MINUTE_MS,
    Failure.BILLING: 60 * _MINUTE_MS,
    Failure.AUTHENTICATION: 15 * _MINUTE_MS,
    Failure.OVERLOADED: 5 * _MINUTE_MS,
    Failure.CONNECTIVITY: 2 * _MINUTE_MS,
}
_MENDED_BY_HAND = frozenset({Failure.AUTHENTICATION, Failure.BILLING})


@stored_as("agent failure detail until at")
class Health(NamedTuple):
    """How an agent's last turn left it; `until` is 0 for one that is well."""

    agent: str
    failure: str = ""
    detail: str = ""
    until: int = 0
    at: int = 0


def health_of(agent: str, outcome: Outcome, at: int) -> Health | None:
    """What a turn's outcome says of the agent itself; None for what is this turn's own affair."""
    if outcome.failure is None:
        return Health(agent, at=at)
    if outcome.failure not in _REST_MS:
        return None
    named = outcome.resets_at if outcome.resets_at is not None and outcome.resets_at > at else None
    until = named if named is not None else at + _REST_MS[outcome.failure]
    return Health(agent, str(outcome.failure), outcome.detail, until, at)


def resting(known: Iterable[Health], at: int, named: str = "") -> dict[str, int]:
    """The agents that are better left alone now, each with the time until when.

    The one that a person named is tried although it was refused: they may have logged in, or paid, a moment ago.
    """
    tired = (one for one in known if one.until > at)
    return {one.agent: one.until for one in tired if one.agent != named or one.failure not in _MENDED_BY_HAND}
