"""The run machine: `step(state, input)` decides everything that can happen to a run. Pure: no clock, no I/O, no store.

The loop in `engine.attempt` stores each decision before it executes the commands. What follows a good end, up to the
next iteration, is in `loop_steps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.agent_fallback import FALLBACK_FAILURES, compute_resume_time, switch_agent, wait_for_limit
from jackline.domain.events import Fact
from jackline.domain.limits import find_exhausted_limit
from jackline.domain.loop_steps import drop_proof, end_iteration, on_host_step_ended, on_reviewed, proceed
from jackline.domain.machine_state import (
    MachineState,
    StepResult,
    count_step,
    fail_run,
    finish_run,
    park_run,
    prepend_fact,
    retry_or_fail,
)
from jackline.domain.run_inputs import (
    CheckEnded,
    Claimed,
    MachineInput,
    Published,
    PullRequestSeen,
    Recover,
    Recovered,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.domain.states import TRANSIENT, Failure, Phase, RunState, WaitReason
from jackline.domain.transitions import next_run

if TYPE_CHECKING:
    from jackline.domain.outcome import Outcome, Usage
    from jackline.domain.records import RunStatus

_STOP_FAILURE = {StopReason.WALL: Failure.TIMEOUT, StopReason.IDLE: Failure.IDLE, StopReason.UNGATED: Failure.UNGATED}
_STOP_WAIT = {
    StopReason.INTERRUPT: WaitReason.PAUSED,
    StopReason.BUDGET: WaitReason.BUDGET,
    StopReason.APPROVAL: WaitReason.APPROVAL,
    StopReason.STUCK: WaitReason.HUMAN,
}
_IN_HURRY = frozenset({StopReason.INTERRUPT, StopReason.SHUTDOWN})  # the next attempt settles the open calls
_LEAVES_DOUBTS = _IN_HURRY | {StopReason.UNGATED}
# Which reasons may replace the reason of a stop that is under way.
_OUTRANKS = {
    StopReason.CANCEL: frozenset(StopReason) - {StopReason.CANCEL},
    StopReason.UNGATED: frozenset(StopReason) - {StopReason.CANCEL, StopReason.UNGATED},
}
_TIMEOUTS = frozenset({StopReason.WALL, StopReason.IDLE})
_KEEPS_ASKING = frozenset({None, StopReason.APPROVAL})
_MOST_IDLE = 2  # idle timeouts after which the session continues
_MOST_TAKEOVERS = 3  # from dead processes in a row, without a new call or commit; then a person is asked
_TURN_GOALS = frozenset({Phase.PLANNING, Phase.WORKING, Phase.REVIEWING})
_MOST_DRAINS = 3  # turns in which an agent may fail to make interrupted calls again; then a person is asked


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
        case StopWanted():
            return _on_stop_wanted(state, event)
        case CheckEnded() | Published() | PullRequestSeen():
            stopped = _end_if_stopped(state, event.at)  # a check got our SIGTERM: even exit code 0 proves nothing
            return on_host_step_ended(state, event) if stopped is None else stopped


def _start_recovery(state: MachineState) -> StepResult:
    status = count_step(state.status._replace(phase=Phase.RECOVERING))
    order = Recover(status.step, gave_up=state.stopping in _TIMEOUTS)
    return StepResult(state=state._replace(status=status), commands=(order,), facts=(Fact("recovery.started"),))


def _on_recovered(state: MachineState, event: Recovered) -> StepResult:
    status = _charge(state.status, event.usage) if event.usage else state.status
    if event.undone:  # the work is not done: the agent has to know, and may make them again
        status = status._replace(goal=Phase.WORKING)
    resting = {**state.resting, **event.resting}
    agents = {*state.spec.agents, *state.spec.review}
    known = {agent: reset for agent, reset in event.limit_resets.items() if agent in agents}
    state = state._replace(status=status, resting=resting, undone=event.undone)
    if event.checks is not None:
        state = state._replace(checks=event.checks, checks_passed=0)
    state = state._replace(
        limit_resets={**state.limit_resets, **known},
        last_iteration=event.last_iteration or state.last_iteration,
        verdicts=event.verdicts,
        findings=event.findings,
        accepted_round=event.accepted_round,
    )
    commits = {"commits": event.commits} if event.commits else {}
    fact = Fact("recovery.ended", {"doubts": list(event.doubts), **commits})
    if event.doubts and not _is_cancelling(state) and state.stopping not in _LEAVES_DOUBTS:
        count = len(event.doubts)
        evidence = f"; {event.evidence}" if event.evidence else ""
        detail = f"{count} call{'s' if count > 1 else ''} in doubt: {', '.join(event.doubts)}{evidence}"
        # Once the doubts are answered, only the checks are left.
        if status.goal is Phase.WORKING and _has_done_work(state):
            state = state._replace(status=state.status._replace(goal=Phase.PROVING, retries=0))
        return prepend_fact(fact, park_run(state, WaitReason.IN_DOUBT, detail))
    if event.asked and not _is_cancelling(state) and state.stopping in _KEEPS_ASKING:
        detail = state.stop_detail or f"waiting for approval of {', '.join(event.asked)}"
        asked_at = event.at if event.asked_at is None else event.asked_at
        return prepend_fact(fact, _park_for_approval(state, detail, asked_at))
    if event.takeovers > _MOST_TAKEOVERS and not event.commits and not _is_cancelling(state) and not state.stopping:
        detail = (
            f"its process died {event.takeovers} times in a row, without a new call or commit; resume it to try again"
        )
        return prepend_fact(fact, park_run(state, WaitReason.HUMAN, detail))
    if event.unprepared and not _is_cancelling(state) and not state.stopping:
        return prepend_fact(fact, fail_run(state, Failure.WORKTREE, event.unprepared))
    if status.goal is Phase.REVIEWING and event.tree and status.tree and event.tree != status.tree:
        dropped = Fact("check.dropped", {"tree": status.tree})
        return prepend_fact(fact, prepend_fact(dropped, _continue(drop_proof(state), event.at)))
    return prepend_fact(fact, _continue(state, event.at))


def _has_done_work(state: MachineState) -> bool:
    """Whether the last turn ended by itself and well, with its done signal, and left nothing for another one."""
    ended_well = state.outcome is not None and state.outcome.ended_well
    return ended_well and state.is_done and state.stopping is None and not state.forced and not state.undone


def _on_turn_ended(state: MachineState, event: TurnEnded) -> StepResult:
    state = state._replace(
        status=_charge(state.status, event.usage),
        outcome=event.outcome,
        resting=dict(event.resting),
        forced=event.forced,
        idle=event.idle,
        undone=event.undone,
        is_done=event.is_done,
        has_worked=True,
    )
    if state.status.goal is Phase.REVIEWING:
        state = _take_review(state, event)
    else:
        state = state._replace(checks=event.checks, checks_passed=0)
        if not event.is_done and event.tree:
            state = state._replace(status=state.status._replace(tree=state.status.tree or event.tree))
    # After Ctrl-C a person does not wait for probes, and a machine that shuts down gives no time for them.
    if event.open_calls and state.stopping not in _IN_HURRY:
        return _start_recovery(state)
    return _continue(state, event.at)


def _take_review(state: MachineState, event: TurnEnded) -> MachineState:
    """The state after a reviewer's turn: which tree it saw, whether that has changed since, and what it said."""
    reviewed = state.status.tree or (event.verdict.tree if event.verdict is not None else event.tree)
    has_changed = bool(event.tree and reviewed) and event.tree != reviewed
    state = state._replace(status=state.status._replace(tree=reviewed), has_tree_changed=has_changed)
    if not event.outcome.ended_well:
        return state
    verdicts = (*state.verdicts, event.verdict) if event.verdict is not None else state.verdicts
    return state._replace(verdicts=verdicts, findings=event.findings, verdict_problem=event.verdict_problem)


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
    stopped = _end_if_stopped(state, at)
    if stopped is not None:
        return stopped
    if state.outcome is not None:
        return _on_outcome(state._replace(outcome=None), state.outcome, at)
    agent, is_review = state.next_agent, state.status.goal is Phase.REVIEWING
    if state.status.goal in _TURN_GOALS and not state.is_accepted and state.resting.get(agent, 0) > at:
        switched = None if is_review else switch_agent(state, "it is resting", at, tried=False)
        if switched is not None:
            return prepend_fact(switched[1], proceed(switched[0], at))
        if state.limit_resets.get(agent, 0) > at:  # no window is counted: another run has met the limit
            return park_run(
                state, WaitReason.LIMIT, f"{agent} rests until its limit resets", compute_resume_time(state, at)
            )
    return proceed(state, at)


def _is_cancelling(state: MachineState) -> bool:
    return state.status.cancel_requested or state.stopping is StopReason.CANCEL


def _on_outcome(state: MachineState, outcome: Outcome, at: int) -> StepResult:
    if outcome.session_lost:  # the next turn starts a fresh session with a resume prompt
        return prepend_fact(
            Fact("session.lost", {"agent": state.next_agent, "detail": outcome.detail}), proceed(state, at)
        )
    if outcome.waits is not None:
        rested = state._replace(status=state.status._replace(retries=0))
        if outcome.asks and state.answered:  # the next attempt follows at once; its prompt has the answers
            return park_run(rested, WaitReason.RETRY, "a person has answered", at)
        return _wait(rested, outcome.waits, outcome.detail, at, outcome.resets_at)._replace(asks=outcome.asks)
    outcome = outcome._replace(detail=_name_reviewer(state, outcome.detail))
    match outcome.failure:
        case None if state.status.goal is Phase.REVIEWING:
            return on_reviewed(state, at)
        case None:
            return _on_turn_done(state, at)
        case failure if failure in TRANSIENT and state.has_retries:
            return retry_or_fail(state, failure, outcome.detail, at)
        case failure:
            return _give_up(state, failure, outcome, at)


def _on_turn_done(state: MachineState, at: int) -> StepResult:
    """A turn of the agent that plans and works has ended well."""
    if state.forced:
        return _remind_of_replay(state, at)
    if state.undone:
        again = state._replace(status=state.status._replace(retries=0), undone=())
        return prepend_fact(Fact("call.undone", {"calls": list(state.undone)}), proceed(again, at))
    if state.status.goal is Phase.PLANNING:
        return proceed(state._replace(status=state.status._replace(goal=Phase.WORKING, retries=0)), at)
    if not state.is_done:
        detail = f"the last line of the agent was not {state.spec.done_signal}"
        # Without a tree, nothing shows that two turns did the same.
        digest = "" if state.status.tree else f"turn {state.status.turn}"
        return end_iteration(state, Failure.UNFINISHED, detail, digest, at)
    return proceed(state._replace(status=state.status._replace(goal=Phase.PROVING, retries=0)), at)


def _remind_of_replay(state: MachineState, at: int) -> StepResult:
    """The agent reports that it is done but has not made the interrupted calls again: remind it, then ask a person."""
    if state.drains + 1 >= _MOST_DRAINS:
        calls = f"{state.forced} interrupted call{'s' if state.forced > 1 else ''}"
        return park_run(state, WaitReason.HUMAN, f"the agent did not repeat {calls} in {_MOST_DRAINS} turns")
    fact = Fact("replay.left", {"calls": state.forced})
    return prepend_fact(fact, proceed(state._replace(drains=state.drains + 1), at))


def _give_up(state: MachineState, failure: Failure, outcome: Outcome, at: int) -> StepResult:
    """This agent cannot continue: switch to the next one, wait for a limit to reset, or fail."""
    if failure is Failure.LIMIT:
        state = state._replace(limit_resets={**state.limit_resets, state.next_agent: outcome.resets_at or 0})
    if failure in FALLBACK_FAILURES and state.status.goal is not Phase.REVIEWING:
        switched = switch_agent(state, f"{failure}: {outcome.detail}", at)
        if switched is not None:
            return prepend_fact(switched[1], proceed(switched[0], at))
    has_limit = bool(state.limit_resets) if state.status.goal is not Phase.REVIEWING else failure is Failure.LIMIT
    if has_limit and failure in FALLBACK_FAILURES:
        return wait_for_limit(state, outcome.detail, at)
    return fail_run(state, failure, outcome.detail)


def _end_if_stopped(state: MachineState, at: int) -> StepResult | None:
    """End the attempt if it is being stopped; a cancel request comes before any other reason."""
    why = StopReason.CANCEL if _is_cancelling(state) else state.stopping
    return None if why is None else _end_stopped(state, why, at)


def _end_stopped(state: MachineState, why: StopReason, at: int) -> StepResult:
    if why is StopReason.CANCEL:
        return finish_run(state, "cancel")
    if why is StopReason.SHUTDOWN:  # due at once, and no retry is counted: nothing has failed
        return park_run(state, WaitReason.RETRY, state.stop_detail, at)
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
        return prepend_fact(fact, proceed(state, at))
    return fail_run(state, _STOP_FAILURE[why], _name_reviewer(state, state.stop_detail))


def _name_reviewer(state: MachineState, detail: str) -> str:
    """Why a turn failed, with its agent if that is not the one of the run."""
    return f"reviewer {state.next_agent}: {detail}" if state.status.goal is Phase.REVIEWING else detail


def _wait(state: MachineState, reason: WaitReason, detail: str, at: int, resets_at: int | None) -> StepResult:
    if reason is WaitReason.APPROVAL:
        return _park_for_approval(state, detail, at)
    return park_run(state, reason, detail, resets_at if reason is WaitReason.BUDGET else None)


def _park_for_approval(state: MachineState, detail: str, asked_at: int) -> StepResult:
    """Wait for approval, until the run's approval timeout if it has one."""
    timeout = state.spec.approval_timeout_ms
    return park_run(state, WaitReason.APPROVAL, detail, asked_at + timeout if timeout else None)
