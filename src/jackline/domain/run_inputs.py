"""The inputs and commands of the run machine. Pure values."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Outcome, Usage
    from jackline.domain.review_records import Finding, Iteration, Verdict
    from jackline.domain.states import Failure, Role, WaitReason

PROOF = "proof"
# States of a pull request; one that is blocked needs a person.
REACHED, OPEN, RED, CLOSED, BLOCKED = "reached", "open", "red", "closed", "blocked"


class StopReason(StrEnum):
    """Why a running turn or check is being stopped."""

    CANCEL = "cancel"
    INTERRUPT = "interrupt"  # a person wants it: the run stays paused
    SHUTDOWN = "shutdown"  # the service ends: the next one continues the run
    WALL = "wall"
    IDLE = "idle"
    BUDGET = "budget"
    APPROVAL = "approval"
    UNGATED = "ungated"
    STUCK = "stuck"  # it does not make the interrupted calls again, or makes the same call again and again


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
    commits: int = 0  # that the run made and that were not known before
    takeovers: int = 0  # from dead processes in a row, this one included, without a new call between; 0: not counted
    limit_resets: Mapping[str, int] = NOTHING  # agents with a limit that no person wants to try now → when it resets
    unprepared: str = ""  # why the run's worktree cannot be used
    tree: str = ""  # the content of the workspace now; empty if it is unknown, or does not matter yet
    last_iteration: Iteration | None = None  # that is over
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    accepted_round: int = 0  # the last review round in which a person has accepted the work


class TurnEnded(NamedTuple):
    """The agent's whole process tree is dead; `open_calls` were allowed and never reported back."""

    at: int
    outcome: Outcome
    usage: Usage
    open_calls: int = 0
    resting: Mapping[str, int] = NOTHING
    forced: int = 0  # interrupted calls that were not made again
    checks: tuple[PendingCheck, ...] = ()  # of work that ended well: to make before the proof
    idle: int = 0  # idle timeouts in a row without a call or a message between them, this one included
    undone: tuple[str, ...] = ()  # effects that a person wants again or knows not to have happened, not made since
    is_done: bool = True  # the agent has given the done signal, if the run asks for one
    tree: str = ""  # of a review: the content of the worker's workspace after it
    verdict: Verdict | None = None  # of a review
    findings: tuple[Finding, ...] = ()  # all of the run, after a review
    verdict_problem: str = ""  # why the answer of a reviewer is not a verdict


class CheckEnded(NamedTuple):
    """A host check ended; `exit_code` is None if it was killed or could not be started."""

    at: int
    exit_code: int | None
    detail: str = ""
    tree: str = ""  # the content of the workspace that was checked; empty if git cannot tell
    changed: tuple[str, ...] = ()  # files that changed during the check, which says nothing then
    digest: str = ""  # of the output
    failure: Failure | None = None  # if not that of the check


class Published(NamedTuple):
    """The host has pushed the branch and opened the pull request, as far as that was necessary; or could not."""

    at: int
    failure: Failure | None = None
    detail: str = ""
    doubts: tuple[str, ...] = ()  # calls of which only a person can tell whether they happened
    waits: WaitReason | None = None  # what the publication needs first
    is_stale: bool = False  # nothing was pushed: the workspace has changed since it was proved
    uncommitted: str = ""  # nothing was pushed: the work is not committed as it should be, and this is the last commit


class PullRequestSeen(NamedTuple):
    """The state of the pull request, compared with what the run waits for."""

    at: int
    state: str  # `reached`, `open`, `red` (there is feedback for the agent), `closed` or `blocked`
    detail: str = ""
    wake_at: int | None = None  # when to look again
    digest: str = ""  # equal for equal failures


class StopWanted(NamedTuple):
    """A person, a timeout, a budget or the gate wants the work to stop."""

    at: int
    why: StopReason
    detail: str = ""


MachineInput = Claimed | Recovered | TurnEnded | CheckEnded | Published | PullRequestSeen | StopWanted


class Recover(NamedTuple):
    """Kill orphaned processes, settle open calls, probe calls in doubt."""

    step: int
    gave_up: bool = False  # the turn timed out: the call in which it hung is not forced on it again


class StartTurn(NamedTuple):
    """Start the agent."""

    step: int
    turn: int
    role: Role
    agent: str = ""  # of a review; empty: the run's
    seat: int = 0  # of a reviewer
    review_round: int = 0
    asks_again: str = ""  # a reviewer's last answer was not a verdict: why; its session continues


class RunCheck(NamedTuple):
    """Make a host check."""

    step: int
    command: str
    name: str = PROOF


class Publish(NamedTuple):
    """Push the branch and open the pull request, unless that was done, or GitHub shows that nothing is left to do."""

    step: int


class LookAtPullRequest(NamedTuple):
    """Find out whether the pull request is as the run wants it."""

    step: int


class StopWork(NamedTuple):
    """Stop the running turn or check: SIGTERM, grace period, SIGKILL."""

    why: StopReason


RunCommand = Recover | StartTurn | RunCheck | Publish | LookAtPullRequest | StopWork
