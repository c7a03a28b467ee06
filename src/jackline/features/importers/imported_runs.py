"""Builds the records that all imported runs share: ended, never resumed, of unknown cost. Pure; it reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.domain.limits import Limits, Spent
from jackline.domain.records import Attempt, RunStatus, Turn
from jackline.domain.spec import AgentOptions, Spec
from jackline.domain.states import Failure, Role, RunState
from jackline.features.importers.import_records import build_digest
from jackline.features.importers.imported_records import ImportedEvent
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENGINE, AGENT = "engine", "agent"
_ELSEWHERE = "elsewhere"


class RunEnding(NamedTuple):
    """How a run ended."""

    state: RunState
    failure: Failure | None = None
    detail: str = ""


SUCCEEDED, CANCELLED = RunEnding(RunState.SUCCEEDED), RunEnding(RunState.CANCELLED)


def build_failure(failure: Failure, detail: str) -> RunEnding:
    return RunEnding(state=RunState.FAILED, failure=failure, detail=detail)


def build_unfinished(stood_at: str) -> RunEnding:
    """A run that was unfinished in its source counts as failed."""
    return build_failure(Failure.CRASHED, f"imported: its last state was {stood_at or 'unknown'}")


# The end is not recorded, or cannot be read.
CUT_OFF = build_failure(Failure.CRASHED, "imported: it was cut off")
UNREADABLE_END = build_failure(Failure.CRASHED, "imported: its metadata could not be read")


def build_ids(kind: str, origin: str, since: str) -> tuple[str, str]:
    """The id of a run, and a second id if the first is in use."""
    return f"{kind}-{build_digest(kind, origin)}", f"{kind}-{build_digest(kind, origin, since)}"


def build_spec(kind: str, prompt: str, workspace: str, agent: str, options: Mapping[str, str] = NOTHING) -> Spec:
    """The spec, as far as it is known; the options name the source."""
    known = {name: value for name, value in options.items() if value}
    return Spec(
        prompt=prompt,
        workspace=workspace,
        agent=agent,
        limits=Limits(*(None for _ in Limits._fields)),
        options={"imported": kind, **known},
        agent_options={agent: AgentOptions(tells_cost=False)},
    )


def mark_unknown_cost(spec: Spec, turns: Sequence[Turn]) -> Spec:
    """Mark the cost of every agent with a turn as unknown."""
    return spec._replace(
        agent_options={**spec.agent_options, **{turn.agent: AgentOptions(tells_cost=False) for turn in turns}}
    )


def build_status(ending: RunEnding, turns: Sequence[Turn], agent: str, spent: Spent, *, attempts: int = 1) -> RunStatus:
    """The status of an imported run."""
    return RunStatus(
        state=ending.state,
        failure=ending.failure,
        detail=ending.detail,
        attempt=attempts,
        step=max((turn.step for turn in turns), default=0),
        turn=len(turns),
        spent=spent,
        agent=agent,
    )


def build_attempt(token: int, started: int, ended: int, outcome: str, owner: str = "") -> Attempt:
    """One attempt, by a process that has ended."""
    return Attempt(
        run_id="",
        token=token,
        owner=owner or _ELSEWHERE,
        host=_ELSEWHERE,
        boot="",
        pid=0,
        warden_pid=None,
        warden_started=None,
        started_at=started,
        ended_at=ended,
        outcome=outcome,
    )


def build_turn_events(turn: Turn, iteration: int = 1) -> tuple[ImportedEvent, ImportedEvent]:
    """The events at the start of a turn."""
    started = {"turn": turn.number, "role": turn.role, "agent": turn.agent, "iteration": iteration, "step": turn.step}
    launched = {"turn": turn.number}
    return (
        ImportedEvent(at=turn.started_at, kind="turn.started", actor=ENGINE, data=started),
        ImportedEvent(at=turn.started_at, kind="turn.launched", actor=ENGINE, data=launched),
    )


def build_turn_file_name(turn: Turn, stream: str = "stdout") -> str:
    """The name of a turn's output in the run's folder."""
    return f"{turn.number:04}-{turn.role}.{stream}"


def build_turn(number: int, agent: str, prompt: str, started: int, role: Role = Role.WORK) -> Turn:
    return Turn(
        run_id="",
        number=number,
        step=number,
        attempt=1,
        role=str(role),
        agent=agent,
        session=None,
        prompt=prompt,
        started_at=started,
    )


def parse_failure(word: str) -> Failure | None:
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
