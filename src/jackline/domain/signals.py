"""What the heart hears and what it orders: the inputs and commands of `heart.step`. Pure values."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Outcome, Usage
    from jackline.domain.states import Failure, Role

PROOF = "proof"


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
    STUCK = "stuck"  # the agent does not make again what was cut off


class PendingCheck(NamedTuple):
    """A host check that the run has to pass before its proof. The engine knows by its name how to make it."""

    name: str
    command: str  # stored with the check's result
    failure: Failure  # of a run that does not pass


class Claimed(NamedTuple):
    """The lease is ours; the old attempt may have left things behind."""

    at: int


class Recovered(NamedTuple):
    """Leftovers are ended and open calls are settled, but for these, which only a person can judge."""

    at: int
    doubts: tuple[str, ...] = ()
    resting: Mapping[str, int] = NOTHING  # agents better left alone, with the time until when
    usage: Usage | None = None  # of a turn that was cut off and never charged
    asked: tuple[str, ...] = ()  # calls that wait for a person's word
    asked_at: int | None = None  # when the first of them was asked
    evidence: str = ""  # what is known of the doubts, for who has to judge them
    checks: tuple[PendingCheck, ...] | None = None  # None: those known from the last turn still apply


class TurnEnded(NamedTuple):
    """The agent's whole tree is gone; `open_calls` were allowed and never reported back."""

    at: int
    outcome: Outcome
    usage: Usage
    open_calls: int = 0
    resting: Mapping[str, int] = NOTHING
    forced: int = 0  # calls that a crash cut off and that were not made again
    checks: tuple[PendingCheck, ...] = ()  # to make before the proof, if the turn ended well


class CheckEnded(NamedTuple):
    """A host check ended; `exit_code` is None if it was killed or could not be started."""

    at: int
    exit_code: int | None
    detail: str = ""


class StopWanted(NamedTuple):
    """A person, a clock, a budget or the gate wants the work to end."""

    at: int
    why: Stop
    detail: str = ""


Input = Claimed | Recovered | TurnEnded | CheckEnded | StopWanted


class Recover(NamedTuple):
    """End leftovers, settle open calls, probe what is in doubt."""

    step: int
    gave_up: bool = False  # we ended the turn because its time had run out: what it hung in is not forced on it again


class StartTurn(NamedTuple):
    """Start the agent."""

    step: int
    turn: int
    role: Role


class RunCheck(NamedTuple):
    """Make a host check."""

    step: int
    command: str
    name: str = PROOF


class StopWork(NamedTuple):
    """TERM, grace, KILL of whatever is under way."""

    why: Stop


Command = Recover | StartTurn | RunCheck | StopWork
