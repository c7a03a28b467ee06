"""The inputs and commands of the run machine. Pure values."""

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


class StopReason(StrEnum):
    """Why a running turn or check is being stopped."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    WALL = "wall"
    IDLE = "idle"
    BUDGET = "budget"
    APPROVAL = "approval"
    UNGATED = "ungated"
    STUCK = "stuck"  # the agent does not make the interrupted calls again


class PendingCheck(NamedTuple):
    """A host check that the run has to pass before its proof. The engine knows by its name how to make it."""

    name: str
    command: str  # stored with the check's result
    failure: Failure  # of a run that does not pass


class Claimed(NamedTuple):
    """This attempt holds the lease; an earlier one may have left processes and open calls behind."""

    at: int


class Recovered(NamedTuple):
    """Orphaned processes are killed and open calls are settled, except the doubts, which only a person can settle."""

    at: int
    doubts: tuple[str, ...] = ()
    resting: Mapping[str, int] = NOTHING  # agents not to use now → until when
    usage: Usage | None = None  # of an interrupted turn, never charged
    asked: tuple[str, ...] = ()  # calls that wait for approval
    asked_at: int | None = None  # when the first of them was asked
    evidence: str = ""  # what is known about the doubts, for the person who settles them
    checks: tuple[PendingCheck, ...] | None = None  # None: the checks of the last turn still apply
    undone: tuple[str, ...] = ()  # effects that did not happen, as is known since the last turn


class TurnEnded(NamedTuple):
    """The agent's whole process tree is dead; `open_calls` were allowed and never reported back."""

    at: int
    outcome: Outcome
    usage: Usage
    open_calls: int = 0
    resting: Mapping[str, int] = NOTHING
    forced: int = 0  # interrupted calls that were not made again
    checks: tuple[PendingCheck, ...] = ()  # to make before the proof, if the turn ended well
    idle: int = 0  # idle timeouts in a row without a call or a message between them, this one included
    undone: tuple[str, ...] = ()  # effects that a person wants again or knows not to have happened, not made since


class CheckEnded(NamedTuple):
    """A host check ended; `exit_code` is None if it was killed or could not be started."""

    at: int
    exit_code: int | None
    detail: str = ""


class StopWanted(NamedTuple):
    """A person, a timeout, a budget or the gate wants the work to stop."""

    at: int
    why: StopReason
    detail: str = ""


MachineInput = Claimed | Recovered | TurnEnded | CheckEnded | StopWanted


class Recover(NamedTuple):
    """Kill orphaned processes, settle open calls, probe calls in doubt."""

    step: int
    gave_up: bool = False  # the turn timed out: the call in which it hung is not forced on it again


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
    """Stop the running turn or check: SIGTERM, grace period, SIGKILL."""

    why: StopReason


RunCommand = Recover | StartTurn | RunCheck | StopWork
