"""What the heart hears and what it orders: the inputs and commands of `heart.step`. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Outcome, Usage
    from jackline.domain.states import Role


class Stop(StrEnum):
    """Why a turn or a check that is under way is being ended."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    WALL = "wall"
    IDLE = "idle"
    BUDGET = "budget"
    DOUBT = "doubt"
    APPROVAL = "approval"
    UNGATED = "ungated"


@dataclass(frozen=True, slots=True)
class Claimed:
    """The lease is ours; the old attempt may have left things behind."""

    at: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """Leftovers are ended and open calls are settled, but for these, which only a person can judge."""

    at: int
    doubts: tuple[str, ...] = ()
    resting: Mapping[str, int] = field(default_factory=dict)  # agents better left alone, with the time until when
    usage: Usage | None = None  # of a turn that was cut off and never charged


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The agent's whole tree is gone; `open_calls` were allowed and never reported back."""

    at: int
    outcome: Outcome
    usage: Usage
    open_calls: int = 0
    resting: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """The proof was run by the host."""

    at: int
    exit_code: int | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StopWanted:
    """A person, a clock, a budget or the gate wants the work to end."""

    at: int
    why: Stop
    detail: str = ""


Input = Claimed | Recovered | TurnEnded | CheckEnded | StopWanted


@dataclass(frozen=True, slots=True)
class Recover:
    """End leftovers, settle open calls, probe what is in doubt."""

    step: int


@dataclass(frozen=True, slots=True)
class StartTurn:
    """Start the agent."""

    step: int
    turn: int
    role: Role


@dataclass(frozen=True, slots=True)
class RunCheck:
    """Run the proof."""

    step: int
    command: str


@dataclass(frozen=True, slots=True)
class StopWork:
    """TERM, grace, KILL of whatever is under way."""

    why: Stop = field()


Command = Recover | StartTurn | RunCheck | StopWork
