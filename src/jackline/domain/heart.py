"""The heart: `step(state, input)` decides everything that can happen to a run. Pure: no clock, no I/O, no store.

The driver in `engine.attempt` writes down what is decided here before it carries the commands out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.budget import exhausted
from jackline.domain.events import NOTHING, Fact
from jackline.domain.retry import backoff_ms
from jackline.domain.signals import (
    PROOF,
    CheckEnded,
    Claimed,
    Command,
    Input,
    Recover,
    Recovered,
    RunCheck,
    StartTurn,
    Stop,
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
    from jackline.domain.records import Life, Spec
    from jackline.domain.signals import PendingCheck

# Where another agent may do better: what is wrong is this one's account, provider, model or program.
_HANDED_OVER = frozenset(
    {
        Failure.LIMIT, Failure.OVERLOADED, Failure.CONNECTIVITY, Failure.AUTHENTICATION, Failure.BILLING,
        Failure.MODEL_NOT_FOUND, Failure.CONTEXT_TOO_LONG, Failure.UNAVAILABLE,
    }
)  # fmt: skip
_AFTER_LIMIT_MS = 60_000  # agents whose limits end in a second must not hand a run to and fro
_STOP_FAILURE = {Stop.WALL: Failure.TIMEOUT, Stop.IDLE: Failure.IDLE, Stop.UNGATED: Failure.UNGATED}
_STOP_WAIT = {
    Stop.INTERRUPT: WaitReason.PAUSED,
    Stop.BUDGET: WaitReason.BUDGET,
    Stop.APPROVAL: WaitReason.APPROVAL,
    Stop.DOUBT: WaitReason.IN_DOUBT,
    Stop.STUCK: WaitReason.HUMAN,
}
# What may still replace the reason of a stop that is under way. A person's word is never lost in a smaller
# reason, above all not in a doubt, after which the run may go on by itself; a clock that runs out meanwhile
# says nothing new.
_LEAVES_DOUBTS = frozenset({Stop.UNGATED, Stop.INTERRUPT})
_OUTRANKS = {
    Stop.CANCEL: frozenset(Stop) - {Stop.CANCEL},
    Stop.UNGATED: frozenset(Stop) - {Stop.CANCEL, Stop.UNGATED},
    Stop.INTERRUPT: frozenset({Stop.DOUBT}),
    Stop.BUDGET: frozenset({Stop.DOUBT}),
    Stop.APPROVAL: frozenset({Stop.DOUBT}),
    Stop.STUCK: frozenset({Stop.DOUBT}),
}
_RAN_OUT = frozenset({Stop.WALL, Stop.IDLE})
_KEEPS_ASKING = frozenset({None, Stop.APPROVAL, Stop.DOUBT})
_MOST_DRAINS = 3  # turns in which an agent may leave undone what was cut off; then a person looks


class State(NamedTuple):
    """A run as the heart sees it: the durable life, and what only matters while this attempt lives."""

    run_id: str
    spec: Spec
    life: Life
    stopping: Stop | None = None
    stop_detail: str = ""
    outcome: Outcome | None = None  # of a turn whose open calls are being settled
    forced: int = 0  # calls that the last turn should have made again and did not
    drains: int = 0  # turns of this attempt that ended so
    # Of agents: who is better left alone, until when; who gave up at a limit in this attempt, and when that ends;
    # who could not go on at all.
    resting: Mapping[str, int] = NOTHING
    limits: Mapping[str, int] = NOTHING
    given_up: frozenset[str] = frozenset()
    checks: tuple[PendingCheck, ...] = ()  # still to pass before the proof; the first is the one under way

    @property
    def agent(self) -> str:
        """Who works on it now."""
        return self.life.agent or self.spec.agent


class Step(NamedTuple):
    """What one input leads to: the new state, the facts to write down, then the commands to carry out."""

    state: State
    commands: tuple[Command, ...] = ()
    facts: tuple[Fact, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether this attempt has nothing more to do."""
        return self.state.life.state is not RunState.RUNNING


def step(state: State, signal: Input) -> Step:
    """Decide what follows from one input."""
    match signal:
        case Claimed():
            return _claimed(state)
        case Recovered():
            return _recovered(state, signal)
        case TurnEnded():
            return _turn_ended(state, signal)
        case CheckEnded():
            return _check_ended(state, signal)
        case StopWanted():
            return _stop_wanted(state, signal)


def _claimed(state: State) -> Step:
    """A new attempt: nothing of the last one's end may stick to it; `succeeded` and `cancelled` refuse."""
    claimed = next_run(state.life.state, "claim")
    life = state.life._replace(state=claimed, reason=None, wake_at=None, failure=None, detail="")
    return _recover(state._replace(life=life, stopping=None, stop_detail="", outcome=None))


def _recover(state: State) -> Step:
    life = _next_step(state.life._replace(phase=Phase.RECOVERING))
    order = Recover(life.step, gave_up=state.stopping in _RAN_OUT)
    return Step(state._replace(life=life), (order,), (Fact("recovery.started"),))


def _recovered(state: State, signal: Recovered) -> Step:
    life = _charged(state.life, signal.usage) if signal.usage else state.life
    checks = state.checks if signal.checks is None else signal.checks
    state = state._replace(life=life, resting={**state.resting, **signal.resting}, checks=checks)
    settled = Fact("recovery.ended", {"doubts": list(signal.doubts)})
    if signal.doubts and not _cancelling(state) and state.stopping not in _LEAVES_DOUBTS:
        count = len(signal.doubts)
        known = f"; {signal.evidence}" if signal.evidence else ""
        detail = f"{count} call{'s' if count > 1 else ''} in doubt: {', '.join(signal.doubts)}{known}"
        return _with(settled, _park(state, WaitReason.IN_DOUBT, detail))
    if signal.asked and not _cancelling(state) and state.stopping in _KEEPS_ASKING:
        detail = state.stop_detail or f"waiting for a person's word on {', '.join(signal.asked)}"
        asked_at = signal.at if signal.asked_at is None else signal.asked_at
        return _with(settled, _park_for_approval(state, detail, asked_at))
    return _with(settled, _go_on(state, signal.at))


def _turn_ended(state: State, signal: TurnEnded) -> Step:
    life = _charged(state.life, signal.usage)
    state = state._replace(life=life, outcome=signal.outcome, resting=dict(signal.resting), forced=signal.forced)
    state = state._replace(checks=signal.checks)
    # A person who presses Ctrl-C does not wait for probes: whoever resumes settles what is open.
    if (signal.open_calls or state.stopping is Stop.DOUBT) and state.stopping is not Stop.INTERRUPT:
        return _recover(state)
    return _go_on(state, signal.at)


def _charged(life: Life, usage: Usage) -> Life:
    return life._replace(
        spent=life.spent.plus(
            tokens_input=usage.tokens_input,
            tokens_output=usage.tokens_output,
            tokens_cached=usage.tokens_cached,
            usd_micros=usage.usd_micros,
        )
    )


def _check_ended(state: State, signal: CheckEnded) -> Step:
    if _cancelling(state):
        return _stopped(state, Stop.CANCEL, signal.at)
    if state.stopping is not None:
        return _stopped(state, state.stopping, signal.at)  # it had our TERM: not even an exit of 0 proves anything now
    ended, life = state.checks[:1], state.life
    if signal.exit_code == 0 and ended:
        return _run_next_check(state._replace(checks=state.checks[1:]))
    if signal.exit_code == 0:
        return _finish(state._replace(life=life._replace(proof=Proof.PROVED)), "succeed")
    if signal.exit_code is not None:  # one that was killed has found nothing: a resume makes the checks again
        life = life._replace(goal=Phase.WORKING, proof=life.proof if ended else Proof.REFUTED)
    failure = ended[0].failure if ended else Failure.PROOF
    return _fail(state._replace(life=life, checks=state.checks[1:]), failure, signal.detail)


def _stop_wanted(state: State, signal: StopWanted) -> Step:
    if state.life.state is not RunState.RUNNING:
        return Step(state)  # it came too late: the attempt has ended already
    under_way = state.stopping
    if under_way is not None and under_way not in _OUTRANKS.get(signal.why, frozenset()):
        return Step(state)  # a second Ctrl-C, or a timeout while we are stopping already, changes nothing
    stopping = state._replace(stopping=signal.why, stop_detail=signal.detail)
    fact = Fact("stop.wanted", {"why": signal.why, "detail": signal.detail})
    return Step(stopping, (StopWork(signal.why),) if under_way is None else (), (fact,))


def _go_on(state: State, at: int) -> Step:
    """What comes next, now that everything is settled."""
    if _cancelling(state):
        return _stopped(state, Stop.CANCEL, at)
    if state.stopping is Stop.DOUBT:  # settled since; how the turn ended was our doing, so it does not count
        return _proceed(state._replace(stopping=None, stop_detail="", outcome=None))
    if state.stopping is not None:
        return _stopped(state, state.stopping, at)
    if state.outcome is not None:
        return _concluded(state._replace(outcome=None), state.outcome, at)
    if state.life.goal is Phase.WORKING and state.resting.get(state.agent, 0) > at:
        rested = _hand_over(state, "it is resting", at, tried=False)
        if rested is not None:
            return rested
    return _proceed(state)


def _cancelling(state: State) -> bool:
    return state.life.cancel_requested or state.stopping is Stop.CANCEL


def _concluded(state: State, outcome: Outcome, at: int) -> Step:
    if outcome.session_lost:  # the driver forgets the session; the next turn starts a fresh one with a packet
        return _with(Fact("session.lost", {"agent": state.agent, "detail": outcome.detail}), _proceed(state))
    if outcome.waits is not None:
        return _waits(state._replace(life=state.life._replace(retries=0)), outcome.waits, outcome.detail, at)
    match outcome.failure:
        case None if state.forced:
            return _undrained(state)
        case None:
            goal = Phase.PROVING
            return _proceed(state._replace(life=state.life._replace(goal=goal, retries=0)))
        case failure if failure in TRANSIENT and state.life.retries < state.spec.retry.most:
            retries = state.life.retries + 1
            wake = at + backoff_ms(state.spec.retry, retries, state.run_id)
            life = state.life._replace(retries=retries, failure=failure)
            return _park(state._replace(life=life), WaitReason.RETRY, outcome.detail, wake)
        case failure:
            return _given_up(state, failure, outcome, at)


def _undrained(state: State) -> Step:
    """The agent says that it is done, and has not made again what was cut off: tell it again, then ask a person."""
    calls = f"{state.forced} call{'s' if state.forced > 1 else ''}"
    if state.drains + 1 >= _MOST_DRAINS:
        detail = f"the agent did not make again {calls} that a crash cut off, in {_MOST_DRAINS} turns"
        return _park(state, WaitReason.HUMAN, detail)
    left = Fact("replay.left", {"calls": state.forced})
    return _with(left, _proceed(state._replace(drains=state.drains + 1)))


def _given_up(state: State, failure: Failure, outcome: Outcome, at: int) -> Step:
    """This agent cannot go on: the next one takes over, or the run waits for a limit to end, or it fails."""
    if failure is Failure.LIMIT:
        state = state._replace(limits={**state.limits, state.agent: outcome.resets_at or 0})
    if failure in _HANDED_OVER:
        taken_over = _hand_over(state, f"{failure}: {outcome.detail}", at)
        if taken_over is not None:
            return taken_over
    if state.limits and failure in _HANDED_OVER:
        return _park(state, WaitReason.LIMIT, outcome.detail, _limit_over(state, at))
    return _fail(state, failure, outcome.detail)


def _hand_over(state: State, why: str, at: int, *, tried: bool = True) -> Step | None:
    """The next agent of the list, in a circle, that has not given up in this attempt and is not resting."""
    agents = state.spec.agents
    well_again = {one for one, ends in state.limits.items() if 0 < ends <= at - _AFTER_LIMIT_MS}
    given_up = (state.given_up - well_again) | {state.agent}
    here = agents.index(state.agent) if state.agent in agents else 0
    ring = (*agents[here + 1 :], *agents[:here])
    free = (one for one in ring if one not in given_up and state.resting.get(one, 0) <= at)
    following = next(free, None)
    if following is None:
        return None
    fact = Fact("agent.switched", {"from": state.agent, "to": following, "why": why})
    life = state.life._replace(agent=following)  # retries are kept: two agents must not hand a failure to and fro
    # Who only rests has not given up: it may be well again before the others are done.
    kept = given_up if tried else state.given_up
    return _with(fact, _proceed(state._replace(life=life, given_up=kept)))


def _limit_over(state: State, at: int) -> int:
    """When to look again: at the first reset; where none is named, or it is past, after the longest wait."""
    others = (one for one in state.spec.agents if one != state.agent)
    named = [*state.limits.values(), *(state.resting.get(one, 0) for one in others)]
    resets = [time for time in named if time > at]
    if resets:
        return min(resets)
    longest = state.spec.retry._replace(base_ms=state.spec.retry.cap_ms)
    return at + backoff_ms(longest, 1, state.run_id)


def _proceed(state: State) -> Step:
    """Towards the goal: the next turn, or the proof, or the end where nothing is to be proved."""
    if state.life.goal is Phase.PROVING:
        return _run_next_check(state)
    first = state.life.iteration == 0
    # The iteration that is under way was counted when it began: a crash in the last one must not end it.
    limits = state.spec.limits if first else state.spec.limits._replace(iterations=None)
    spent = exhausted(limits, state.life.spent)
    if spent is not None:
        return _park(state, WaitReason.BUDGET, f"budget spent: {spent}")
    # The tree changes from here on: what a proof said of an older one no longer holds.
    life = state.life._replace(phase=Phase.WORKING, turn=state.life.turn + 1, proof=Proof.UNVERIFIED)
    life = _next_step(life)
    if first:
        life = life._replace(iteration=1, spent=life.spent.plus(iterations=1))
    order = StartTurn(life.step, life.turn, Role.WORK)
    fact = Fact("turn.started", {"turn": life.turn, "role": Role.WORK, "iteration": life.iteration})
    return Step(state._replace(life=life, stopping=None, stop_detail="", outcome=None), (order,), (fact,))


def _run_next_check(state: State) -> Step:
    """Make the next host check. The proof is last: the others are quick, and a failed one changes the tree again."""
    if not state.checks and not state.spec.proof:
        return _finish(state, "succeed")
    name, command = state.checks[0][:2] if state.checks else (PROOF, state.spec.proof)
    life = _next_step(state.life._replace(phase=Phase.PROVING))
    fact = Fact("check.started", {"command": command})
    return Step(state._replace(life=life), (RunCheck(life.step, command, name),), (fact,))


def _stopped(state: State, why: Stop, at: int) -> Step:
    if why is Stop.CANCEL:
        return _finish(state, "cancel")
    if why in _STOP_WAIT:
        return _waits(state, _STOP_WAIT[why], state.stop_detail, at)
    return _fail(state, _STOP_FAILURE[why], state.stop_detail)


def _waits(state: State, reason: WaitReason, detail: str, at: int) -> Step:
    if reason is WaitReason.APPROVAL:
        return _park_for_approval(state, detail, at)
    return _park(state, reason, detail)


def _park_for_approval(state: State, detail: str, asked_at: int) -> Step:
    """With the time at which silence is an answer, if the run says so."""
    timeout = state.spec.approval_timeout_ms
    return _park(state, WaitReason.APPROVAL, detail, asked_at + timeout if timeout else None)


def _park(state: State, reason: WaitReason, detail: str, wake_at: int | None = None) -> Step:
    life = state.life._replace(
        state=next_run(state.life.state, "park"),
        reason=reason,
        wake_at=wake_at,
        phase=None,
        detail=detail,
    )
    fact = Fact("run.waiting", {"reason": reason, "wake_at": wake_at, "detail": detail})
    return Step(state._replace(life=life), (), (fact,))


def _fail(state: State, failure: Failure, detail: str) -> Step:
    # Retries are counted in a row: who resumes a failed run begins a new row.
    life = state.life._replace(failure=failure, detail=detail, retries=0)
    return _finish(state._replace(life=life), "fail")


def _finish(state: State, change: str) -> Step:
    life = state.life._replace(state=next_run(state.life.state, change), phase=None)
    if life.state is RunState.SUCCEEDED:
        life = life._replace(failure=None, detail="")
    fact = Fact(f"run.{life.state}", {"failure": life.failure, "detail": life.detail, "proof": life.proof})
    return Step(state._replace(life=life), (), (fact,))


def _next_step(life: Life) -> Life:
    return life._replace(step=life.step + 1, spent=life.spent.plus(steps=1))


def _with(fact: Fact, decided: Step) -> Step:
    return decided._replace(facts=(fact, *decided.facts))
