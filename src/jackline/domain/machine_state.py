"""The state of the run machine, and the steps that end an attempt. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING, Fact
from jackline.domain.limits import compute_backoff_ms
from jackline.domain.states import TRANSIENT, Phase, RunState, WaitReason
from jackline.domain.transitions import next_run
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Outcome
    from jackline.domain.records import RunStatus
    from jackline.domain.review_records import Finding, Iteration, Verdict
    from jackline.domain.run_inputs import PendingCheck, RunCommand, StopReason
    from jackline.domain.spec import Spec
    from jackline.domain.states import Failure


class MachineState(NamedTuple):
    """A run as the machine sees it: the stored status, and facts that matter only during this attempt."""

    run_id: str
    spec: Spec
    status: RunStatus
    stopping: StopReason | None = None
    stop_detail: str = ""
    outcome: Outcome | None = None  # of a turn whose open calls are being settled
    forced: int = 0  # calls that the last turn should have made again and did not
    drains: int = 0  # turns of this attempt that ended this way
    undone: tuple[str, ...] = ()  # effects that did not happen, which the last turn did not know
    resting: Mapping[str, int] = NOTHING  # agents not to use now → until when
    limit_resets: Mapping[str, int] = NOTHING  # agents that hit a limit in this attempt → when it resets
    given_up: frozenset[str] = frozenset()  # agents that could not continue in this attempt
    idle: int = 0  # idle timeouts in a row, the last turn's included
    checks: tuple[PendingCheck, ...] = ()  # to pass before the proof, in this order
    checks_passed: int = 0  # of them, since the files changed last
    answered: bool = False  # a person has answered the agent's questions since the turn ended
    is_done: bool = True  # the last turn gave the done signal
    last_iteration: Iteration | None = None  # that is over
    verdicts: tuple[Verdict, ...] = ()  # of all rounds
    findings: tuple[Finding, ...] = ()
    accepted_round: int = 0  # the last review round in which a person has accepted the work
    verdict_problem: str = ""  # why the last answer of a reviewer was not a verdict
    has_asked_again: bool = False  # a reviewer was asked once more for its verdict
    has_void_proof: bool = False  # the proof was void: files changed while it ran
    has_tree_changed: bool = False  # the workspace is no longer the one that the reviewers have seen
    has_worked: bool = False  # a turn has ended in this attempt
    has_failed_first: bool = False  # the proof was made before any work, and failed

    @property
    def agent(self) -> str:
        """The agent that works on the run now."""
        return self.status.agent or self.spec.agent

    @property
    def has_retries(self) -> bool:
        """Whether a transient failure may be tried again."""
        return self.status.retries < self.spec.retry.most

    @property
    def checks_left(self) -> tuple[PendingCheck, ...]:
        """The checks still to pass before the proof; the first is the one under way."""
        return self.checks[self.checks_passed :]

    @property
    def seat(self) -> int:
        """The first seat whose verdict about this round is missing."""
        return len({one.seat for one in self.round_verdicts})

    @property
    def round_verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of the current review round."""
        return tuple(one for one in self.verdicts if one.review_round == self.status.review_round)

    @property
    def is_accepted(self) -> bool:
        """Whether a person has accepted the work in the current review round; another tree is another round."""
        return self.status.goal is Phase.REVIEWING and 0 < self.accepted_round == self.status.review_round

    @property
    def next_agent(self) -> str:
        """The agent of the next turn: a reviewer, or the one that works."""
        is_review = self.status.goal is Phase.REVIEWING and self.seat < len(self.spec.review)
        return self.spec.review[self.seat] if is_review else self.agent


class StepResult(NamedTuple):
    """The result of one input: the new state, the facts to store, then the commands to execute."""

    state: MachineState
    commands: tuple[RunCommand, ...] = ()
    facts: tuple[Fact, ...] = ()
    asks: bool = False  # the run may wait only while a question of its agent is open
    iteration: Iteration | None = None  # that is over

    @property
    def ended(self) -> bool:
        """Whether this attempt is over."""
        return self.state.status.state is not RunState.RUNNING


def park_run(state: MachineState, reason: WaitReason, detail: str, wake_at: int | None = None) -> StepResult:
    """Let the run wait."""
    status = state.status._replace(
        state=next_run(state.status.state, "park"),
        reason=reason,
        wake_at=wake_at,
        phase=None,
        detail=detail,
    )
    fact = Fact("run.waiting", {"reason": reason, "wake_at": wake_at, "detail": detail})
    return StepResult(state=state._replace(status=status), facts=(fact,))


def retry_or_fail(state: MachineState, failure: Failure, detail: str, at: int) -> StepResult:
    """Try again after a transient failure, as often as the run may; else end it as failed."""
    if failure not in TRANSIENT or not state.has_retries:
        return fail_run(state, failure, detail)
    retries = state.status.retries + 1
    wake = at + compute_backoff_ms(state.spec.retry, retries, state.run_id)
    status = state.status._replace(retries=retries, failure=failure)
    return park_run(state._replace(status=status), WaitReason.RETRY, detail, wake)


def fail_run(state: MachineState, failure: Failure, detail: str) -> StepResult:
    """End the run as failed."""
    # Only consecutive retries count: a resume starts again from zero.
    status = state.status._replace(failure=failure, detail=detail, retries=0)
    return finish_run(state._replace(status=status), "fail")


def finish_run(state: MachineState, change: str) -> StepResult:
    """End the run."""
    status = state.status._replace(state=next_run(state.status.state, change), phase=None)
    if status.state is RunState.SUCCEEDED:
        status = status._replace(failure=None, detail="")
    fact = Fact(f"run.{status.state}", {"failure": status.failure, "detail": status.detail, "proof": status.proof})
    return StepResult(state=state._replace(status=status), facts=(fact,))


def count_step(status: RunStatus) -> RunStatus:
    """The status at the beginning of the next step."""
    return status._replace(step=status.step + 1, spent=status.spent.plus(steps=1))


def prepend_fact(fact: Fact, result: StepResult) -> StepResult:
    """The same result, with one more fact before the others."""
    return result._replace(facts=(fact, *result.facts))
