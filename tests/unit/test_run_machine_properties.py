"""The heart under a sensible history: it never raises, never goes back, orders nothing after the end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.agent_fallback import MOST_WINDOWS
from jackline.domain.limits import Limits, RetryPolicy
from jackline.domain.machine_state import MachineState, StepResult
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import RunStatus
from jackline.domain.run_inputs import (
    CheckEnded,
    Claimed,
    MachineInput,
    PendingCheck,
    Recover,
    Recovered,
    RunCheck,
    StartTurn,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.domain.run_machine import step
from jackline.domain.spec import Spec
from jackline.domain.states import Failure, Phase, Proof, RunState, WaitReason

FINAL = {RunState.SUCCEEDED, RunState.CANCELLED}
TIMES = st.integers(0, 10**12)
SPECS = st.builds(
    Spec,
    prompt=st.just("p"),
    workspace=st.just("/w"),
    proof=st.sampled_from(["make test", "make test", ""]),
    retry=st.builds(RetryPolicy, most=st.integers(0, 3)),
    limits=st.builds(Limits, steps=st.sampled_from([None, None, 9]), usd_micros=st.sampled_from([None, None, 5])),
)
OUTCOMES = st.just(Outcome()) | st.builds(
    Outcome,
    failure=st.none() | st.sampled_from(Failure),
    resets_at=st.none() | TIMES,
    waits=st.sampled_from([None, None, None, WaitReason.HUMAN]),
    session_lost=st.sampled_from([False, False, False, True]),
)
GATE = PendingCheck("learnings", "review", Failure.LEARNINGS)
USAGES = st.builds(Usage, *[st.integers(0, 3)] * 5)
STOPS = st.builds(StopWanted, TIMES, st.sampled_from(StopReason))
DOUBTS = st.sampled_from([(), (), (), (), (), ("c1",), ("c1", "c2")])
ANSWERS: dict[Phase | None, st.SearchStrategy[MachineInput]] = {
    Phase.RECOVERING: st.builds(
        Recovered, TIMES, DOUBTS, checks=st.sampled_from([None, None, (), (GATE,)]), undone=DOUBTS
    ),
    Phase.WORKING: st.builds(
        TurnEnded,
        TIMES,
        OUTCOMES,
        USAGES,
        st.integers(0, 2),
        checks=st.sampled_from([(), (), (GATE,), (GATE, GATE)]),
        undone=DOUBTS,
    ),
    Phase.PROVING: st.builds(CheckEnded, TIMES, st.sampled_from([0, 1, None])),
}
CRASH = "crash"
CANCEL = "cancel"


def sensible(draw: st.DrawFn, state: MachineState) -> MachineInput | str:
    """Something that can happen now: the work ends, somebody wants a stop, or everything dies."""
    chance = draw(st.integers(0, 19))
    if state.status.state is not RunState.RUNNING:
        return CRASH if chance < 19 else draw(STOPS)
    if chance < 12:
        return draw(ANSWERS[state.status.phase])
    if chance < 16:
        return draw(STOPS)
    return CRASH if chance < 19 else CANCEL


def follow(state: MachineState, event: MachineInput | str) -> StepResult:
    if event == CRASH:  # only the durable life is left, and another attempt claims it
        life = state.status._replace(attempt=state.status.attempt + 1)
        return step(MachineState(state.run_id, state.spec, life), Claimed(0))
    if isinstance(event, str):
        return StepResult(state._replace(status=state.status._replace(cancel_requested=True)))
    return step(state, event)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[MachineState, MachineInput | str, StepResult]]:
    """What was, what happened, what followed: twenty times, over any number of attempts."""
    goal = draw(st.sampled_from([Phase.WORKING, Phase.PROVING]))  # an earlier attempt may have come this far
    decided = step(MachineState("run", draw(SPECS), RunStatus(attempt=1, goal=goal)), Claimed(0))
    history = []
    for _ in range(20):
        if decided.state.status.state in FINAL:
            break
        before, event = decided.state, sensible(draw, decided.state)
        decided = follow(before, event)
        history.append((before, event, decided))
    return history


@settings(max_examples=400, deadline=None)
@given(histories())
def test_every_sensible_history_keeps_the_promises(
    history: list[tuple[MachineState, MachineInput | str, StepResult]],
) -> None:
    for before, event, decided in history:
        never_goes_back(before.status, decided.state.status)
        ends_cleanly(decided)
        keeps_its_word(before, event, decided)
        orders_fit_the_phase(before, event, decided)


def never_goes_back(before: RunStatus, after: RunStatus) -> None:
    assert after.step >= before.step
    assert after.turn >= before.turn
    assert after.iteration >= before.iteration
    spent = after.spent._asdict()
    assert all(spent[name] >= amount for name, amount in before.spent._asdict().items())
    assert after.spent.steps == after.step


def ends_cleanly(decided: StepResult) -> None:
    life = decided.state.status
    assert decided.ended == (life.state is not RunState.RUNNING)
    if decided.ended:
        assert decided.commands == ()
    assert (life.phase is None) == decided.ended
    assert (life.reason is not None) == (life.state is RunState.WAITING)
    assert (life.wake_at is not None) <= (life.reason in {WaitReason.LIMIT, WaitReason.RETRY, WaitReason.BUDGET})
    assert (life.state is RunState.FAILED) <= (life.failure is not None)
    assert 0 <= life.windows <= MOST_WINDOWS
    assert (life.state is RunState.SUCCEEDED) <= (life.failure is None)
    assert len(decided.commands) <= 1


def keeps_its_word(before: MachineState, event: MachineInput | str, decided: StepResult) -> None:
    """Success only by a turn or a proof that nobody had stopped, with no effect in doubt; no cancel is forgotten."""
    life = decided.state.status
    cancelling = before.status.cancel_requested or before.stopping is StopReason.CANCEL
    if life.state is RunState.SUCCEEDED and before.status.state is not RunState.SUCCEEDED:
        assert not cancelling
        assert before.stopping is None
        if isinstance(event, TurnEnded):
            assert (event.open_calls, event.undone) == (0, ()), "an effect may be in doubt, or has to be made again"
        if isinstance(event, Recovered):
            assert (event.doubts, event.undone) == ((), ())
        proved = isinstance(event, CheckEnded) and event.exit_code == 0 and not before.checks_left
        assert not decided.state.checks_left, "a host check was passed over"
        assert (life.proof is Proof.PROVED) == bool(before.spec.proof) == proved
    if cancelling and decided.ended and before.status.state is RunState.RUNNING and event != CRASH:
        assert life.state is RunState.CANCELLED
    if life.state is RunState.CANCELLED:
        assert cancelling
    is_shut_down = before.stopping is StopReason.SHUTDOWN and before.status.state is RunState.RUNNING
    if is_shut_down and decided.ended and not cancelling and not isinstance(event, str):
        assert (life.reason, life.wake_at, life.retries) == (WaitReason.RETRY, event.at, before.status.retries)


def orders_fit_the_phase(before: MachineState, event: MachineInput | str, decided: StepResult) -> None:
    """What is ordered is what the phase says, and written down; nothing is started while we stop."""
    life = decided.state.status
    for command in decided.commands:
        assert decided.facts
        match command:
            case Recover():
                assert (life.phase, command.step) == (Phase.RECOVERING, life.step)
            case StartTurn():
                assert (life.phase, command.step, command.turn) == (Phase.WORKING, life.step, life.turn)
                assert decided.state.stopping is None
                assert before.stopping is None
            case RunCheck():
                assert (life.phase, command.step) == (Phase.PROVING, life.step)
                assert decided.state.stopping is None
                if isinstance(event, Recovered):
                    assert (event.doubts, event.undone) == ((), ())
            case StopWork():
                assert isinstance(event, StopWanted)
                assert before.stopping is None
    if not decided.facts:
        assert decided.state.status == before.status or event == CANCEL


@settings(max_examples=100, deadline=None)
@given(SPECS, st.lists(st.sampled_from(StopReason), min_size=1, max_size=4))
def test_a_run_that_is_stopped_ends_with_the_next_news(spec: Spec, whys: list[StopReason]) -> None:
    decided = step(step(MachineState("run", spec, RunStatus(attempt=1)), Claimed(0)).state, Recovered(0))
    if decided.ended:
        return
    for why in whys:
        decided = step(decided.state, StopWanted(0, why))
    assert step(decided.state, TurnEnded(0, Outcome(), Usage())).ended


LIMITED = st.builds(TurnEnded, TIMES, st.builds(Outcome, st.just(Failure.LIMIT), resets_at=st.none() | TIMES), USAGES)


@settings(max_examples=100, deadline=None)
@given(SPECS, st.lists(LIMITED, min_size=MOST_WINDOWS + 2, max_size=MOST_WINDOWS + 2))
def test_a_run_that_only_a_service_continues_waits_for_a_person_after_five_limits(
    spec: Spec, limits: list[TurnEnded]
) -> None:
    """Each wake-up is a new attempt with the stored status; a claim by a person would set `windows` to 0."""
    status, waits = RunStatus(attempt=1), 0
    for limited in limits:
        begun = step(MachineState("run", spec, status), Claimed(0))
        decided = step(begun.state, Recovered(0))
        if not decided.ended:
            decided = step(decided.state, limited)
        status = decided.state.status
        if status.reason is not WaitReason.LIMIT:
            break
        assert status.wake_at is not None
        waits += 1
    assert status.reason in {WaitReason.HUMAN, WaitReason.BUDGET}
    assert waits <= MOST_WINDOWS
