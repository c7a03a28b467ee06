"""Builds the records that all imported runs share: ended, never resumed, of unknown cost. Pure; it reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.importing.kinds import digits
from jackline.domain.budget import Limits, Spent
from jackline.domain.events import NOTHING
from jackline.domain.records import Attempt, Life, Manner, Spec, Turn
from jackline.domain.states import Failure, Role, RunState
from jackline.named import NamedTuple
from jackline.store.import_contract import ImportedEvent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENGINE, AGENT = "engine", "agent"
_ELSEWHERE = "elsewhere"


class Ending(NamedTuple):
    """How a run ended."""

    state: RunState
    failure: Failure | None = None
    detail: str = ""


SUCCEEDED, CANCELLED = Ending(RunState.SUCCEEDED), Ending(RunState.CANCELLED)


def failed(failure: Failure, detail: str) -> Ending:
    return Ending(RunState.FAILED, failure, detail)


def unfinished(stood_at: str) -> Ending:
    """A run that was unfinished in its source counts as failed."""
    return failed(Failure.CRASHED, f"imported: it stood at {stood_at or 'an unknown state'}")


# The end is not recorded, or cannot be read.
CUT_OFF = failed(Failure.CRASHED, "imported: it was cut off")
UNTOLD = failed(Failure.CRASHED, "imported: its metadata could not be read")


def ids(kind: str, origin: str, since: str) -> tuple[str, str]:
    """The id of a run, and a second id if the first is in use."""
    return f"{kind}-{digits(kind, origin)}", f"{kind}-{digits(kind, origin, since)}"


def spec(kind: str, prompt: str, workspace: str, agent: str, options: Mapping[str, str] = NOTHING) -> Spec:
    """The spec, as far as it is known; the options name the source."""
    told = {name: value for name, value in options.items() if value}
    return Spec(
        prompt,
        workspace,
        agent,
        limits=Limits(*(None for _ in Limits._fields)),
        options={"imported": kind, **told},
        manners={agent: Manner(tells_cost=False)},
    )


def at_unknown_cost(spec: Spec, turns: Sequence[Turn]) -> Spec:
    """Mark the cost of every agent with a turn as unknown."""
    return spec._replace(manners={**spec.manners, **{turn.agent: Manner(tells_cost=False) for turn in turns}})


def life(ending: Ending, turns: Sequence[Turn], agent: str, spent: Spent, *, attempts: int = 1) -> Life:
    """The status of an imported run."""
    return Life(
        state=ending.state,
        failure=ending.failure,
        detail=ending.detail,
        attempt=attempts,
        step=max((turn.step for turn in turns), default=0),
        turn=len(turns),
        spent=spent,
        agent=agent,
    )


def attempt(token: int, started: int, ended: int, outcome: str, owner: str = "") -> Attempt:
    """One attempt, by a process that has ended."""
    return Attempt("", token, owner or _ELSEWHERE, _ELSEWHERE, "", 0, None, None, started, ended, outcome)


def turn_began(turn: Turn, iteration: int = 1) -> tuple[ImportedEvent, ImportedEvent]:
    """The events at the start of a turn."""
    begun = {"turn": turn.number, "role": turn.role, "agent": turn.agent, "iteration": iteration, "step": turn.step}
    launched = {"turn": turn.number}
    return (
        ImportedEvent(turn.started_at, "turn.started", ENGINE, begun),
        ImportedEvent(turn.started_at, "turn.launched", ENGINE, launched),
    )


def turn_file(turn: Turn, stream: str = "stdout") -> str:
    """The name of a turn's output in the run's folder."""
    return f"{turn.number:04}-{turn.role}.{stream}"


def new_turn(number: int, agent: str, prompt: str, started: int, role: Role = Role.WORK) -> Turn:
    return Turn("", number, number, 1, str(role), agent, None, prompt, started)


def told_failure(word: str) -> Failure | None:
    """Parse a failure class of jackline or of another tool."""
    return _FAILURES.get(word.strip().lower())


_FAILURES = {
    **{str(one): one for one in Failure},
    "usage_limit": Failure.LIMIT,
    "rate_limit": Failure.LIMIT,
    "no_commits": Failure.NO_COMMIT,
    "model_error": Failure.MODEL_NOT_FOUND,
    "network": Failure.CONNECTIVITY,
    "no_agent": Failure.UNAVAILABLE,
    "auth": Failure.AUTHENTICATION,
}
