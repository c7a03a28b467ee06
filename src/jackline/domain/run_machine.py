"""The run machine: `step(state, input)` decides everything that can happen to a run. Pure: no clock, no I/O, no store.

The loop in `engine.attempt` stores each decision before it executes the commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING, Fact
from jackline.domain.limits import compute_backoff_ms, find_exhausted_limit
from jackline.domain.run_inputs import (
    PROOF,
    CheckEnded,
    Claimed,
    MachineInput,
    Recover,
    Recovered,
    RunCheck,
    RunCommand,
    StartTurn,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.domain.states import TRANSIENT, Failure, Phase, Proof, Role, RunState, WaitReason
from jackline.domain.transitions import next_run
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Outcome, Usage
    from jackline.domain.records import RunStatus, Spec
    from jackline.domain.run_inputs import PendingCheck

# Failures of this agent's account, provider, model or program: another agent may succeed.
_HANDED_OVER = frozenset(
    {
        Failure.LIMIT, Failure.OVERLOADED, Failure.CONNECTIVITY, Failure.AUTHENTICATION, Failure.BILLING,
        Failure.MODEL_NOT_FOUND, Failure.CONTEXT_TOO_LONG, Failure.UNAVAILABLE,
    }
)  # fmt: skip
_AFTER_LIMIT_MS = 60_000  # agents with short limits must not pass a run back and forth
_STOP_FAILURE = {StopReason.WALL: Failure.TIMEOUT, StopReason.IDLE: Failure.IDLE, StopReason.UNGATED: Failure.UNGATED}
_STOP_WAIT = {
    StopReason.INTERRUPT: WaitReason.PAUSED,
    StopReason.BUDGET: WaitReason.BUDGET,
    StopReason.APPROVAL: WaitReason.APPROVAL,
    StopReason.STUCK: WaitReason.HUMAN,
}
_LEAVES_DOUBTS = frozenset({StopReason.UNGATED, StopReason.INTERRUPT})
# Which reasons may replace the reason of a stop that is under way.
_OUTRANKS = {
    StopReason.CANCEL: frozenset(StopReason) - {StopReason.CANCEL},
    StopReason.UNGATED: frozenset(StopReason) - {StopReason.CANCEL, StopReason.UNGATED},
}
_TIMEOUTS = frozenset({StopReason.WALL, StopReason.IDLE})
_KEEPS_ASKING = frozenset({None, StopReason.APPROVAL})
_MOST_IDLE = 2  # idle timeouts after which the session continues
_MOST_DRAINS = 3  # turns in which an agent may fail to make interrupted calls again; then a person is asked


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
    limits: Mapping[str, int] = NOTHING  # agents that hit a limit in this attempt → when it resets
    given_up: frozenset[str] = frozenset()  # agents that could not continue in this attempt
    idle: int = 0  # idle timeouts in a row, the last turn's included
    checks: tuple[PendingCheck, ...] = ()  # still to pass before the proof; the first is the one under way
    answered: bool = False  # a person has answered the agent's questions since the turn ended

    @property
    def agent(self) -> str:
        """The agent that works on the run now."""
        return self.status.agent or self.spec.agent


class StepResult(NamedTuple):
    """The result of one input: the new state, the facts to store, then the commands to execute."""

    state: MachineState
    commands: tuple[RunCommand, ...] = ()
    facts: tuple[Fact, ...] = ()
    asks: bool = False  # the run may wait only while a question of its agent is open

    @property
    def ended(self) -> bool:
        """Whether this attempt is over."""
        return self.state.status.state is not RunState.RUNNING


def step(state: MachineState, event: MachineInput) -> StepResult:
    """Decide the result of one input."""
    match event:
        case Claimed():  # the transition table refuses `succeeded` and `cancelled` runs
            claimed = next_run(state.status.state, "claim")
            status = state.status._replace(state=claimed, reason=None, wake_at=None, failure=None, detail="")
            return _start_recovery(state._replace(status=status, stopping=None, stop_detail="", outcome=None))
        case Recovered():
            return _on_recovered(state, event)
        case TurnEnded():
            return _on_turn_ended(state, event)
        case CheckEnded():
            return _on_check_ended(state, event)
        case StopWanted():
            return _on_stop_wanted(state, event)


def _start_recovery(state: MachineState) -> StepResult:
    status = _count_step(state.status._replace(phase=Phase.RECOVERING))
    order = Recover(status.step, gave_up=state.stopping in _TIMEOUTS)
    return StepResult(state=state._replace(status=status), commands=(order,), facts=(Fact("recovery.started"),))


def _on_recovered(state: MachineState, event: Recovered) -> StepResult:
    status = _charge(state.status, event.usage) if event.usage else state.status
    checks = state.checks if event.checks is None else event.checks
    if event.undone:  # the work is not done: the agent has to know, and may make them again
        status = status._replace(goal=Phase.WORKING)
    resting = {**state.resting, **event.resting}
    state = state._replace(status=status, resting=resting, checks=checks, undone=event.undone)
    fact = Fact("recovery.ended", {"doubts": list(event.doubts)})
    if event.doubts and not _is_cancelling(state) and state.stopping not in _LEAVES_DOUBTS:
        count = len(event.doubts)
        evidence = f"; {event.evidence}" if event.evidence else ""
        detail = f"{count} call{'s' if count > 1 else ''} in doubt: {', '.join(event.doubts)}{evidence}"
        if _has_done_work(state):  # once the doubts are answered, only the checks are left
            state = state._replace(status=state.status._replace(goal=Phase.PROVING, retries=0))
        return _prepend(fact, _park(state, WaitReason.IN_DOUBT, detail))
    if event.asked and not _is_cancelling(state) and state.stopping in _KEEPS_ASKING:
        detail = state.stop_detail or f"waiting for approval of {', '.join(event.asked)}"
        asked_at = event.at if event.asked_at is None else event.asked_at
        return _prepend(fact, _park_for_approval(state, detail, asked_at))
    return _prepend(fact, _continue(state, event.at))


def _has_done_work(state: MachineState) -> bool:
    """Whether the last turn ended by itself and well, and left nothing for another one."""
    ended_well = state.outcome is not None and state.outcome.ended_well
    return ended_well and state.stopping is None and not state.forced and not state.undone


def _on_turn_ended(state: MachineState, event: TurnEnded) -> StepResult:
    state = state._replace(
        status=_charge(state.status, event.usage),
        outcome=event.outcome,
        resting=dict(event.resting),
        forced=event.forced,
        idle=event.idle,
        checks=event.checks,
        undone=event.undone,
    )
    # After Ctrl-C a person does not wait for probes: the next attempt settles the open calls.
    if event.open_calls and state.stopping is not StopReason.INTERRUPT:
        return _start_recovery(state)
    return _continue(state, event.at)


def _charge(status: RunStatus, usage: Usage) -> RunStatus:
    return status._replace(
        spent=status.spent.plus(
            tokens_input=usage.tokens_input,
            tokens_output=usage.tokens_output,
            tokens_cached=usage.tokens_cached,
            usd_micros=usage.usd_micros,
            usd_estimated=usage.usd_estimated,
        )
    )


def _on_check_ended(state: MachineState, event: CheckEnded) -> StepResult:
    if _is_cancelling(state):
        return _end_stopped(state, StopReason.CANCEL, event.at)
    if state.stopping is not None:  # the check got our SIGTERM: even exit code 0 proves nothing
        return _end_stopped(state, state.stopping, event.at)
    ended, status = state.checks[:1], state.status
    if event.exit_code == 0 and ended:
        return _run_next_check(state._replace(checks=state.checks[1:]))
    if event.exit_code == 0:
        return _finish(state._replace(status=status._replace(proof=Proof.PROVED)), "succeed")
    if event.exit_code is not None:  # one that was killed has found nothing: a resume makes the checks again
        status = status._replace(goal=Phase.WORKING, proof=status.proof if ended else Proof.REFUTED)
    failure = ended[0].failure if ended else Failure.PROOF
    return _fail(state._replace(status=status, checks=state.checks[1:]), failure, event.detail)


def _on_stop_wanted(state: MachineState, event: StopWanted) -> StepResult:
    if state.status.state is not RunState.RUNNING:
        return StepResult(state)  # too late: the attempt has ended
    under_way = state.stopping
    if under_way is not None and under_way not in _OUTRANKS.get(event.why, frozenset()):
        return StepResult(state)  # a second Ctrl-C, or a timeout during a stop, changes nothing
    stopping = state._replace(stopping=event.why, stop_detail=event.detail)
    fact = Fact("stop.wanted", {"why": event.why, "detail": event.detail})
    return StepResult(state=stopping, commands=(StopWork(event.why),) if under_way is None else (), facts=(fact,))


def _continue(state: MachineState, at: int) -> StepResult:
    """Continue after all calls are settled."""
    if _is_cancelling(state):
        return _end_stopped(state, StopReason.CANCEL, at)
    if state.stopping is not None:
        return _end_stopped(state, state.stopping, at)
    if state.outcome is not None:
        return _on_outcome(state._replace(outcome=None), state.outcome, at)
    if state.status.goal is Phase.WORKING and state.resting.get(state.agent, 0) > at:
        switched = _switch_agent(state, "it is resting", at, tried=False)
        if switched is not None:
            return switched
    return _proceed(state)


def _is_cancelling(state: MachineState) -> bool:
    return state.status.cancel_requested or state.stopping is StopReason.CANCEL


def _on_outcome(state: MachineState, outcome: Outcome, at: int) -> StepResult:
    if outcome.session_lost:  # the next turn starts a fresh session with a resume prompt
        return _prepend(Fact("session.lost", {"agent": state.agent, "detail": outcome.detail}), _proceed(state))
    if outcome.waits is not None:
        rested = state._replace(status=state.status._replace(retries=0))
        if outcome.asks and state.answered:  # the next attempt follows at once; its prompt has the answers
            return _park(rested, WaitReason.RETRY, "a person has answered", at)
        return _wait(rested, outcome.waits, outcome.detail, at, outcome.resets_at)._replace(asks=outcome.asks)
    match outcome.failure:
        case None if state.forced:
            return _remind_of_replay(state)
        case None if state.undone:
            again = state._replace(status=state.status._replace(retries=0), undone=())
            return _prepend(Fact("call.undone", {"calls": list(state.undone)}), _proceed(again))
        case None:
            return _proceed(state._replace(status=state.status._replace(goal=Phase.PROVING, retries=0)))
        case failure if failure in TRANSIENT and state.status.retries < state.spec.retry.most:
            retries = state.status.retries + 1
            wake = at + compute_backoff_ms(state.spec.retry, retries, state.run_id)
            status = state.status._replace(retries=retries, failure=failure)
            return _park(state._replace(status=status), WaitReason.RETRY, outcome.detail, wake)
        case failure:
            return _give_up(state, failure, outcome, at)


def _remind_of_replay(state: MachineState) -> StepResult:
    """The agent reports that it is done but has not made the interrupted calls again: remind it, then ask a person."""
    calls = f"{state.forced} call{'s' if state.forced > 1 else ''}"
    if state.drains + 1 >= _MOST_DRAINS:
        detail = f"in {_MOST_DRAINS} turns the agent did not make again {calls} that a crash interrupted"
        return _park(state, WaitReason.HUMAN, detail)
    fact = Fact("replay.left", {"calls": state.forced})
    return _prepend(fact, _proceed(state._replace(drains=state.drains + 1)))


def _give_up(state: MachineState, failure: Failure, outcome: Outcome, at: int) -> StepResult:
    """This agent cannot continue: switch to the next one, wait for a limit to reset, or fail."""
    if failure is Failure.LIMIT:
        state = state._replace(limits={**state.limits, state.agent: outcome.resets_at or 0})
    if failure in _HANDED_OVER:
        switched = _switch_agent(state, f"{failure}: {outcome.detail}", at)
        if switched is not None:
            return switched
    if state.limits and failure in _HANDED_OVER:
        return _park(state, WaitReason.LIMIT, outcome.detail, _find_reset(state, at))
    return _fail(state, failure, outcome.detail)


def _switch_agent(state: MachineState, why: str, at: int, *, tried: bool = True) -> StepResult | None:
    """Switch to the next agent, round-robin, that has not given up in this attempt and is not resting."""
    agents = state.spec.agents
    recovered = {agent for agent, reset in state.limits.items() if 0 < reset <= at - _AFTER_LIMIT_MS}
    given_up = (state.given_up - recovered) | {state.agent}
    here = agents.index(state.agent) if state.agent in agents else 0
    ring = (*agents[here + 1 :], *agents[:here])
    free = (agent for agent in ring if agent not in given_up and state.resting.get(agent, 0) <= at)
    following = next(free, None)
    if following is None:
        return None
    fact = Fact("agent.switched", {"from": state.agent, "to": following, "why": why})
    status = state.status._replace(
        agent=following
    )  # retries are kept: two agents must not pass a failure back and forth
    # An agent that only rests has not given up: it may be usable before the others are done.
    kept = given_up if tried else state.given_up
    return _prepend(fact, _proceed(state._replace(status=status, given_up=kept)))


def _find_reset(state: MachineState, at: int) -> int:
    """When to try again: at the first known reset in the future, otherwise after the longest backoff."""
    others = (agent for agent in state.spec.agents if agent != state.agent)
    times = [*state.limits.values(), *(state.resting.get(agent, 0) for agent in others)]
    resets = [time for time in times if time > at]
    if resets:
        return min(resets)
    longest = state.spec.retry._replace(base_ms=state.spec.retry.cap_ms)
    return at + compute_backoff_ms(longest, 1, state.run_id)


def _proceed(state: MachineState) -> StepResult:
    """Start the next turn, or the host checks once the work is done."""
    if state.status.goal is Phase.PROVING:
        return _run_next_check(state)
    first = state.status.iteration == 0
    # The current iteration was counted when it began: a crash in the last one must not end it.
    limits = state.spec.limits if first else state.spec.limits._replace(iterations=None)
    spent = find_exhausted_limit(limits, state.status.spent)
    if spent is not None:
        return _park(state, WaitReason.BUDGET, f"budget spent: {spent}")
    # The turn changes the tree, so an earlier proof no longer applies.
    status = state.status._replace(phase=Phase.WORKING, turn=state.status.turn + 1, proof=Proof.UNVERIFIED)
    status = _count_step(status)
    if first:
        status = status._replace(iteration=1, spent=status.spent.plus(iterations=1))
    order = StartTurn(step=status.step, turn=status.turn, role=Role.WORK)
    fact = Fact("turn.started", {"turn": status.turn, "role": Role.WORK, "iteration": status.iteration})
    return StepResult(
        state=state._replace(status=status, stopping=None, stop_detail="", outcome=None),
        commands=(order,),
        facts=(fact,),
    )


def _run_next_check(state: MachineState) -> StepResult:
    """Make the next host check. The proof is last: the others are quick, and a failed one changes the tree again."""
    if not state.checks and not state.spec.proof:
        return _finish(state, "succeed")
    name, command = state.checks[0][:2] if state.checks else (PROOF, state.spec.proof)
    status = _count_step(state.status._replace(phase=Phase.PROVING))
    fact = Fact("check.started", {"command": command})
    return StepResult(
        state=state._replace(status=status),
        commands=(RunCheck(step=status.step, command=command, name=name),),
        facts=(fact,),
    )


def _end_stopped(state: MachineState, why: StopReason, at: int) -> StepResult:
    if why is StopReason.CANCEL:
        return _finish(state, "cancel")
    if why in _STOP_WAIT:
        detail = state.stop_detail
        if why is StopReason.BUDGET:  # the end of the turn replaced estimates by what was reported
            # Iterations and steps are counted when they begin: they stop no turn.
            limits = state.spec.limits._replace(iterations=None, steps=None)
            spent = find_exhausted_limit(limits, state.status.spent)
            detail = f"budget spent: {spent}" if spent else detail
        # A provider's limit may have come at the same time; only the reset of a day's budget ends this wait.
        outcome = state.outcome
        resets_at = outcome.resets_at if outcome is not None and outcome.failure is not Failure.LIMIT else None
        return _wait(state, _STOP_WAIT[why], detail, at, resets_at)
    if why is StopReason.IDLE and 0 < state.idle <= _MOST_IDLE:  # the next turn has the resume prompt
        fact = Fact("turn.idle", {"turn": state.status.turn, "times": state.idle, "most": _MOST_IDLE})
        return _prepend(fact, _proceed(state))
    return _fail(state, _STOP_FAILURE[why], state.stop_detail)


def _wait(state: MachineState, reason: WaitReason, detail: str, at: int, resets_at: int | None) -> StepResult:
    if reason is WaitReason.APPROVAL:
        return _park_for_approval(state, detail, at)
    return _park(state, reason, detail, resets_at if reason is WaitReason.BUDGET else None)


def _park_for_approval(state: MachineState, detail: str, asked_at: int) -> StepResult:
    """Wait for approval, until the run's approval timeout if it has one."""
    timeout = state.spec.approval_timeout_ms
    return _park(state, WaitReason.APPROVAL, detail, asked_at + timeout if timeout else None)


def _park(state: MachineState, reason: WaitReason, detail: str, wake_at: int | None = None) -> StepResult:
    status = state.status._replace(
        state=next_run(state.status.state, "park"),
        reason=reason,
        wake_at=wake_at,
        phase=None,
        detail=detail,
    )
    fact = Fact("run.waiting", {"reason": reason, "wake_at": wake_at, "detail": detail})
    return StepResult(state=state._replace(status=status), commands=(), facts=(fact,))


def _fail(state: MachineState, failure: Failure, detail: str) -> StepResult:
    # Only consecutive retries count: a resume starts again from zero.
    status = state.status._replace(failure=failure, detail=detail, retries=0)
    return _finish(state._replace(status=status), "fail")


def _finish(state: MachineState, change: str) -> StepResult:
    status = state.status._replace(state=next_run(state.status.state, change), phase=None)
    if status.state is RunState.SUCCEEDED:
        status = status._replace(failure=None, detail="")
    fact = Fact(f"run.{status.state}", {"failure": status.failure, "detail": status.detail, "proof": status.proof})
    return StepResult(state=state._replace(status=status), commands=(), facts=(fact,))


def _count_step(status: RunStatus) -> RunStatus:
    return status._replace(step=status.step + 1, spent=status.spent.plus(steps=1))


def _prepend(fact: Fact, result: StepResult) -> StepResult:
    return result._replace(facts=(fact, *result.facts))
