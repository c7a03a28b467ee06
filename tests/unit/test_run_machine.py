"""The heart, transition by transition: what follows from each thing that can happen to a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jackline.domain.agent_fallback import MOST_WINDOWS
from jackline.domain.limits import Limits, RetryPolicy, Spent, compute_backoff_ms
from jackline.domain.machine_state import MachineState, StepResult
from jackline.domain.notices import build_notice
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
from jackline.domain.states import TRANSIENT, Failure, Phase, Proof, Role, RunState, WaitReason
from jackline.domain.transitions import TransitionRefused
from jackline.features.cases.learning import REVIEW_COMMAND

AT = 1_000_000
NO_LIMIT = Limits(wall_ms=None, iterations=None, steps=None, calls=None, tokens=None, usd_micros=None)
SPEC = Spec("fix it", "/w", proof="make test", limits=NO_LIMIT)
UNPROVED = SPEC._replace(proof="")
QUEUED = RunStatus(attempt=1)
SETTLED = Recovered(AT)


def begun(spec: Spec = SPEC, **life: Any) -> MachineState:
    return MachineState("run", spec, QUEUED._replace(**life))


def drive(state: MachineState, *signals: MachineInput) -> StepResult:
    decided = StepResult(state)
    for signal in signals:
        decided = step(decided.state, signal)
    return decided


def ended(failure: Failure | None = None, *, open_calls: int = 0, **outcome: Any) -> TurnEnded:
    return TurnEnded(AT, Outcome(failure, **outcome), Usage(), open_calls)


def stop(why: StopReason, detail: str = "") -> StopWanted:
    return StopWanted(AT, why, detail)


def recovering(spec: Spec = SPEC, **life: Any) -> MachineState:
    return drive(begun(spec, **life), Claimed(AT)).state


def working(spec: Spec = SPEC, **life: Any) -> MachineState:
    return drive(begun(spec, **life), Claimed(AT), SETTLED).state


def proving(spec: Spec = SPEC, **life: Any) -> MachineState:
    return drive(working(spec, **life), ended()).state


def kinds(decided: StepResult) -> list[str]:
    return [fact.kind for fact in decided.facts]


# --- from claim to success -------------------------------------------------------------------------------


def test_a_claimed_run_recovers_before_anything_else() -> None:
    decided = step(begun(), Claimed(AT))
    assert decided.commands == (Recover(1),)
    assert decided.state.status.state is RunState.RUNNING
    assert decided.state.status.phase is Phase.RECOVERING
    assert not decided.ended


def test_nothing_left_behind_leads_to_the_first_turn() -> None:
    decided = drive(begun(), Claimed(AT), SETTLED)
    assert decided.commands == (StartTurn(2, 1, Role.WORK),)
    life = decided.state.status
    assert (life.phase, life.turn, life.iteration, life.step) == (Phase.WORKING, 1, 1, 2)
    assert (life.spent.steps, life.spent.iterations) == (2, 1)
    assert kinds(decided) == ["recovery.ended", "turn.started"]


def test_a_turn_that_ended_well_leads_to_the_proof_by_the_host() -> None:
    decided = drive(working(), ended())
    assert decided.commands == (RunCheck(3, "make test"),)
    assert (decided.state.status.phase, decided.state.status.goal) == (Phase.PROVING, Phase.PROVING)
    assert decided.state.status.proof is Proof.UNVERIFIED


def test_a_green_proof_is_success_and_proved() -> None:
    decided = drive(proving(), CheckEnded(AT, 0))
    assert (decided.state.status.state, decided.state.status.proof) == (RunState.SUCCEEDED, Proof.PROVED)
    assert decided.ended
    assert decided.commands == ()
    assert kinds(decided) == ["run.succeeded"]


def test_success_without_a_proof_says_unverified() -> None:
    decided = drive(working(UNPROVED), ended())
    assert (decided.state.status.state, decided.state.status.proof) == (RunState.SUCCEEDED, Proof.UNVERIFIED)


def test_a_red_proof_fails_the_run_and_a_resume_works_again() -> None:
    decided = drive(proving(SPEC._replace(limits=NO_LIMIT._replace(iterations=1))), CheckEnded(AT, 1, "2 failed"))
    life = decided.state.status
    assert (life.state, life.failure) == (RunState.FAILED, Failure.PROOF)
    assert life.detail == (
        "2 failed; limit reached: 1 of 1 iterations; `jackline resume run --max-iterations N` continues it"
    )
    assert life.proof is Proof.REFUTED
    over = SETTLED._replace(last_iteration=decided.iteration)
    assert drive(decided.state, Claimed(AT), over).state.status.failure is Failure.PROOF
    resumed = drive(decided.state._replace(spec=SPEC), Claimed(AT), over)
    assert isinstance(resumed.commands[0], StartTurn)
    assert resumed.state.status.proof is Proof.UNVERIFIED, "the tree changes: what was said of it no longer holds"


def test_a_proof_that_was_killed_refutes_nothing_and_is_tried_again() -> None:
    decided = drive(proving(), CheckEnded(AT, None, "killed"))
    life = decided.state.status
    assert (life.state, life.failure, life.proof) == (RunState.FAILED, Failure.PROOF, Proof.UNVERIFIED)
    assert isinstance(drive(decided.state, Claimed(AT), SETTLED).commands[0], RunCheck)


def test_what_a_turn_used_is_added_to_what_was_spent() -> None:
    before = working(spent=Spent(tokens_input=1, usd_micros=5, wall_ms=9, calls=2))
    usage = Usage(tokens_input=10, tokens_output=20, tokens_cached=3, usd_micros=7)
    spent = step(before, TurnEnded(AT, Outcome(), usage, open_calls=1)).state.status.spent
    assert (spent.tokens_input, spent.tokens_output, spent.tokens_cached) == (11, 20, 3)
    assert (spent.usd_micros, spent.wall_ms, spent.calls) == (12, 9, 2)


# --- the learnings of an open case -----------------------------------------------------------------------


GATE = PendingCheck("learnings", REVIEW_COMMAND, Failure.LEARNINGS)


def reviewing(spec: Spec = SPEC, **life: Any) -> MachineState:
    return drive(working(spec, **life), TurnEnded(AT, Outcome(), Usage(), checks=(GATE,))).state


def test_a_run_with_an_open_case_has_its_learnings_looked_at_before_the_proof() -> None:
    decided = drive(working(), TurnEnded(AT, Outcome(), Usage(), checks=(GATE,)))
    assert decided.commands == (RunCheck(3, REVIEW_COMMAND, "learnings"),)
    assert (decided.state.status.phase, decided.state.status.goal) == (Phase.PROVING, Phase.PROVING)
    assert kinds(decided) == ["check.started"]
    then = drive(decided.state, CheckEnded(AT, 0))
    assert then.commands == (RunCheck(4, "make test"),)
    assert drive(then.state, CheckEnded(AT, 0)).state.status.state is RunState.SUCCEEDED


def test_without_a_proof_resolved_learnings_are_enough_and_prove_nothing() -> None:
    life = drive(reviewing(UNPROVED), CheckEnded(AT, 0)).state.status
    assert (life.state, life.proof) == (RunState.SUCCEEDED, Proof.UNVERIFIED)


@pytest.mark.parametrize("spec", [SPEC, UNPROVED])
def test_unresolved_learnings_fail_the_run_and_a_resume_works_again(spec: Spec) -> None:
    spec = spec._replace(limits=NO_LIMIT._replace(iterations=1))
    decided = drive(reviewing(spec), CheckEnded(AT, 1, "1 learning is unresolved (L001)"))
    life = decided.state.status
    assert (life.state, life.failure, life.proof) == (RunState.FAILED, Failure.LEARNINGS, Proof.UNVERIFIED)
    assert life.detail.startswith("1 learning is unresolved (L001); limit reached: 1 of 1 iterations; ")
    more = decided.state._replace(spec=spec._replace(limits=NO_LIMIT))
    assert isinstance(drive(more, Claimed(AT), SETTLED).commands[0], StartTurn)


def test_a_crash_in_the_review_or_in_the_proof_after_it_leads_to_the_review_again() -> None:
    for state in (reviewing(), drive(reviewing(), CheckEnded(AT, 0)).state):
        again = MachineState("run", state.spec, state.status)
        for checks, name in (((GATE,), "learnings"), ((), "proof")):
            (order,) = drive(again, Claimed(AT), SETTLED._replace(checks=checks)).commands
            assert isinstance(order, RunCheck)
            assert order.name == name


def test_calls_that_are_settled_first_do_not_make_it_forget_the_case() -> None:
    decided = drive(working(), TurnEnded(AT, Outcome(), Usage(), open_calls=1, checks=(GATE,)), SETTLED)
    assert decided.commands[0] == RunCheck(4, REVIEW_COMMAND, "learnings")


@pytest.mark.parametrize(
    ("why", "state"), [(StopReason.CANCEL, RunState.CANCELLED), (StopReason.INTERRUPT, RunState.WAITING)]
)
def test_a_stop_during_the_review_is_heeded_and_a_green_review_proves_nothing(why: StopReason, state: RunState) -> None:
    assert drive(reviewing(), stop(why), CheckEnded(AT, 0)).state.status.state is state


# --- crashes ---------------------------------------------------------------------------------------------


def test_after_a_crash_while_proving_the_check_runs_and_not_another_turn() -> None:
    crashed = MachineState("run", SPEC, proving().status)
    decided = drive(crashed, Claimed(AT), SETTLED)
    assert decided.commands == (RunCheck(5, "make test"),)
    assert decided.state.status.turn == 1


def test_after_a_crash_while_working_the_same_iteration_goes_on() -> None:
    crashed = MachineState("run", SPEC, working().status)
    decided = drive(crashed, Claimed(AT), SETTLED)
    life = decided.state.status
    assert decided.commands == (StartTurn(4, 2, Role.WORK),)
    assert (life.iteration, life.spent.iterations) == (1, 1)


def test_doubts_after_a_crash_park_the_run_until_a_person_has_judged() -> None:
    crashed = MachineState("run", SPEC, working().status)
    decided = drive(crashed, Claimed(AT), Recovered(AT, ("c1", "c2")))
    life = decided.state.status
    assert (life.state, life.reason, life.phase) == (RunState.WAITING, WaitReason.IN_DOUBT, None)
    assert life.detail == "2 calls in doubt: c1, c2"
    assert decided.commands == ()
    assert kinds(decided) == ["recovery.ended", "run.waiting"]
    assert isinstance(drive(decided.state, Claimed(AT), SETTLED).commands[0], StartTurn)


def test_a_turn_that_leaves_calls_open_is_settled_before_it_counts() -> None:
    decided = step(working(), ended(open_calls=2))
    assert decided.commands == (Recover(3),)
    assert decided.state.status.phase is Phase.RECOVERING
    assert isinstance(step(decided.state, SETTLED).commands[0], RunCheck)


def test_a_turn_that_leaves_a_doubt_parks_the_run() -> None:
    decided = drive(working(), ended(open_calls=1), Recovered(AT, ("c1",)))
    assert decided.state.status.reason is WaitReason.IN_DOUBT
    assert decided.state.status.detail == "1 call in doubt: c1"


def test_a_doubt_while_proving_is_the_goal_kept() -> None:
    parked = drive(MachineState("run", SPEC, proving().status), Claimed(AT), Recovered(AT, ("c1",)))
    assert isinstance(drive(parked.state, Claimed(AT), SETTLED).commands[0], RunCheck)


def test_a_new_attempt_keeps_nothing_of_the_last_ones_end() -> None:
    failed = drive(working(), stop(StopReason.WALL, "too long"), ended(Failure.CRASHED)).state
    again = step(failed, Claimed(AT)).state
    assert (again.stopping, again.stop_detail, again.outcome) == (None, "", None)
    assert (again.status.failure, again.status.detail, again.status.reason, again.status.wake_at) == (
        None,
        "",
        None,
        None,
    )
    assert isinstance(step(again, SETTLED).commands[0], StartTurn)


def test_a_lost_session_starts_a_fresh_one_at_once() -> None:
    decided = drive(working(), ended(Failure.AGENT_ERROR, session_lost=True))
    assert decided.commands == (StartTurn(3, 2, Role.WORK),)
    assert decided.state.status.retries == 0


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELLED])
def test_nothing_reopens_succeeded_or_cancelled(state: RunState) -> None:
    over = begun(state=state)
    with pytest.raises(TransitionRefused):
        step(over, Claimed(AT))
    for signal in (SETTLED, ended(), ended(Failure.CRASHED), CheckEnded(AT, 0)):
        with pytest.raises(TransitionRefused):
            step(over._replace(status=over.status._replace(goal=Phase.PROVING), spec=UNPROVED), signal)


@pytest.mark.parametrize("why", StopReason)
@pytest.mark.parametrize("state", [state for state in RunState if state is not RunState.RUNNING])
def test_a_stop_that_comes_too_late_changes_nothing(why: StopReason, state: RunState) -> None:
    over = begun(state=state)
    assert step(over, stop(why)) == StepResult(over)


# --- limits ---------------------------------------------------------------------------------------------


def limited(windows: int, resets_at: int | None = AT + 9) -> StepResult:
    return drive(working(windows=windows), ended(Failure.LIMIT, detail="no more", resets_at=resets_at))


def test_a_run_waits_for_five_limits_and_then_for_a_person() -> None:
    for windows in range(MOST_WINDOWS):
        status = limited(windows).state.status
        assert (status.reason, status.wake_at, status.windows) == (WaitReason.LIMIT, AT + 9, windows + 1)
    status = limited(MOST_WINDOWS).state.status
    assert (status.reason, status.wake_at, status.windows) == (WaitReason.HUMAN, None, MOST_WINDOWS)
    assert status.detail.startswith("no more; it has waited for 5 limits since a person last continued it: `jackline ")


def test_the_notice_of_a_limit_has_the_time_of_its_reset() -> None:
    status = limited(0, 1_800_000_000_000).state.status
    notice = build_notice("n1", "run", SPEC, status, AT)
    assert notice is not None
    assert notice.body == "no more; it can continue at 2027-01-15 08:00:00 UTC"


def test_without_a_known_reset_a_run_waits_longer_each_time() -> None:
    waits = [(limited(windows, None).state.status.wake_at or 0) - AT for windows in range(MOST_WINDOWS)]
    cap = SPEC.retry.cap_ms
    assert all(0.75 * (cap << windows) <= wait <= cap << windows for windows, wait in enumerate(waits))
    rests = TurnEnded(AT, Outcome(Failure.LIMIT), Usage(), resting={SPEC.agent: AT + 77})
    assert drive(working(), rests).state.status.wake_at == AT + 77, "the agent and its run have one time"


def test_a_service_does_not_try_an_agent_that_rests_for_a_limit() -> None:
    rests = {SPEC.agent: AT + 9}
    decided = drive(recovering(windows=2), Recovered(AT, resting=rests, limit_resets=rests))
    status = decided.state.status
    assert (decided.commands, status.reason, status.wake_at) == ((), WaitReason.LIMIT, AT + 9)
    assert status.windows == 2, "the run has not met the limit itself"
    assert isinstance(drive(recovering(), Recovered(AT, resting=rests)).commands[0], StartTurn), "a person may try"
    proving_again = drive(recovering(goal=Phase.PROVING), Recovered(AT, resting=rests, limit_resets=rests))
    assert isinstance(proving_again.commands[0], RunCheck), "the checks need no agent"
    spec = SPEC._replace(fallback=("codex",))
    switched = drive(recovering(spec), Recovered(AT, resting=rests, limit_resets=rests))
    assert (switched.state.status.agent, len(switched.commands)) == ("codex", 1)
    others = drive(recovering(), Recovered(AT, limit_resets={"codex": AT + 9}), ended(Failure.AUTHENTICATION))
    assert others.state.status.failure is Failure.AUTHENTICATION, "a limit of an agent that the run does not use"


# --- stops -----------------------------------------------------------------------------------------------

PARKS = [
    (StopReason.INTERRUPT, WaitReason.PAUSED),
    (StopReason.BUDGET, WaitReason.BUDGET),
    (StopReason.APPROVAL, WaitReason.APPROVAL),
]
FAILS = [(StopReason.WALL, Failure.TIMEOUT), (StopReason.IDLE, Failure.IDLE), (StopReason.UNGATED, Failure.UNGATED)]
PLACES: dict[str, tuple[Callable[[], MachineState], MachineInput]] = {
    "recovering": (recovering, SETTLED),
    "working": (working, ended(Failure.CRASHED)),
    "working, though it ended well": (working, ended()),
    "proving": (proving, CheckEnded(AT, None)),
    "proving, though it went red": (proving, CheckEnded(AT, 1)),
    "proving, though it went green": (proving, CheckEnded(AT, 0)),
}
EVERYWHERE = pytest.mark.parametrize("place", PLACES)


def stopped(place: str, *whys: StopReason) -> StepResult:
    """Stop for these reasons, one after the other, and then hear the end of what was under way."""
    make, end = PLACES[place]
    return drive(make(), *(stop(why, f"because {why}") for why in whys), end)


@pytest.mark.parametrize("open_calls", [0, 1])
def test_an_idle_session_continues_twice(open_calls: int) -> None:
    for times in (1, 2, 3):
        end = ended(Failure.CRASHED, open_calls=open_calls)._replace(idle=times)
        decided = drive(working(), stop(StopReason.IDLE, "quiet"), end, *((SETTLED,) if open_calls else ()))
        status = decided.state.status
        if times < 3:
            assert [type(one) for one in decided.commands] == [StartTurn]
            assert ("turn.idle" in kinds(decided), decided.state.stopping) == (True, None)
        else:
            assert (status.state, status.failure, status.detail) == (RunState.FAILED, Failure.IDLE, "quiet")


def test_an_idle_session_does_not_continue_without_budget() -> None:
    spec = SPEC._replace(limits=NO_LIMIT._replace(usd_micros=5))
    end = TurnEnded(AT, Outcome(Failure.CRASHED), Usage(usd_micros=6), idle=1)
    decided = drive(working(spec), stop(StopReason.IDLE, "quiet"), end)
    assert decided.state.status.reason is WaitReason.BUDGET


def test_a_stop_ends_the_work_and_waits_for_its_end() -> None:
    decided = step(working(), stop(StopReason.INTERRUPT))
    assert decided.commands == (StopWork(StopReason.INTERRUPT),)
    assert kinds(decided) == ["stop.wanted"]
    assert not decided.ended


@EVERYWHERE
@pytest.mark.parametrize(("why", "reason"), PARKS)
def test_stops_that_park(place: str, why: StopReason, reason: WaitReason) -> None:
    """A proof that had our TERM proves nothing, even when it ends with 0."""
    life = stopped(place, why).state.status
    assert (life.state, life.reason, life.detail) == (RunState.WAITING, reason, f"because {why}")
    assert life.proof is Proof.UNVERIFIED


@EVERYWHERE
@pytest.mark.parametrize(("why", "failure"), FAILS)
def test_stops_that_fail(place: str, why: StopReason, failure: Failure) -> None:
    life = stopped(place, why).state.status
    assert (life.state, life.failure, life.detail) == (RunState.FAILED, failure, f"because {why}")
    assert life.proof is Proof.UNVERIFIED


@EVERYWHERE
def test_a_cancel_ends_whatever_is_under_way(place: str) -> None:
    assert stopped(place, StopReason.CANCEL).state.status.state is RunState.CANCELLED


@EVERYWHERE
def test_a_cancel_request_in_the_store_is_enough(place: str) -> None:
    make, end = PLACES[place]
    state = make()
    asked = state._replace(status=state.status._replace(cancel_requested=True))
    decided = step(asked, end)
    assert decided.state.status.state is RunState.CANCELLED
    assert decided.state.status.proof is Proof.UNVERIFIED


def test_a_cancelled_run_does_not_wait_for_a_persons_judgement() -> None:
    crashed = MachineState("run", SPEC, working().status._replace(cancel_requested=True))
    decided = drive(crashed, Claimed(AT), Recovered(AT, ("c1",)))
    assert decided.state.status.state is RunState.CANCELLED


def test_a_cancelled_turn_settles_its_open_calls_first() -> None:
    decided = drive(working(), stop(StopReason.CANCEL), ended(Failure.CRASHED, open_calls=1))
    assert isinstance(decided.commands[0], Recover)
    assert step(decided.state, Recovered(AT, ("c1",))).state.status.state is RunState.CANCELLED


@pytest.mark.parametrize("why", [StopReason.WALL, StopReason.IDLE, StopReason.BUDGET, StopReason.APPROVAL])
def test_a_doubt_is_asked_about_whatever_ended_the_turn(why: StopReason) -> None:
    settling = drive(working(), stop(why), ended(Failure.CRASHED, open_calls=1))
    assert isinstance(settling.commands[0], Recover)
    assert step(settling.state, Recovered(AT, ("c1",))).state.status.reason is WaitReason.IN_DOUBT


@pytest.mark.parametrize(("why", "failure"), FAILS)
def test_a_stop_is_not_forgotten_while_open_calls_are_settled(why: StopReason, failure: Failure) -> None:
    decided = drive(working(), stop(why), ended(open_calls=1), SETTLED)
    assert decided.state.status.failure is failure


def test_a_gate_that_is_not_in_force_outweighs_a_doubt() -> None:
    decided = drive(working(), stop(StopReason.UNGATED), ended(open_calls=1), Recovered(AT, ("c1",)))
    assert decided.state.status.failure is Failure.UNGATED


@pytest.mark.parametrize("second", StopReason)
@pytest.mark.parametrize("first", StopReason)
def test_a_second_stop_sends_no_second_signal(first: StopReason, second: StopReason) -> None:
    once = step(working(), stop(first)).state
    twice = step(once, stop(second))
    assert twice.commands == ()
    assert twice.state.stopping in {first, second}
    assert (twice.state == once) == (twice.facts == ())


def test_a_second_interrupt_is_debounced() -> None:
    once = step(working(), stop(StopReason.INTERRUPT, "first")).state
    assert step(once, stop(StopReason.INTERRUPT, "second")) == StepResult(once)


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        (StopReason.INTERRUPT, StopReason.CANCEL, StopReason.CANCEL),
        (StopReason.UNGATED, StopReason.CANCEL, StopReason.CANCEL),
        (StopReason.CANCEL, StopReason.INTERRUPT, StopReason.CANCEL),
        (StopReason.CANCEL, StopReason.UNGATED, StopReason.CANCEL),
        (StopReason.INTERRUPT, StopReason.UNGATED, StopReason.UNGATED),
        (StopReason.INTERRUPT, StopReason.WALL, StopReason.INTERRUPT),
        (StopReason.WALL, StopReason.INTERRUPT, StopReason.WALL),
        (StopReason.SHUTDOWN, StopReason.CANCEL, StopReason.CANCEL),
        (StopReason.INTERRUPT, StopReason.SHUTDOWN, StopReason.INTERRUPT),
        (StopReason.SHUTDOWN, StopReason.WALL, StopReason.SHUTDOWN),
        (StopReason.BUDGET, StopReason.INTERRUPT, StopReason.BUDGET),
    ],
)
def test_a_greater_reason_replaces_a_smaller_one(first: StopReason, second: StopReason, wins: StopReason) -> None:
    decided = drive(working(), stop(first, "first"), stop(second, "second"))
    assert decided.state.stopping is wins
    assert decided.state.stop_detail == ("first" if wins is first else "second")


def test_an_interrupt_pauses_at_once_and_leaves_open_calls_to_the_resume() -> None:
    """Nobody who pressed Ctrl-C waits for a minute of probes."""
    decided = drive(working(), stop(StopReason.INTERRUPT), ended(Failure.CRASHED, open_calls=1))
    assert (decided.commands, decided.state.status.reason) == ((), WaitReason.PAUSED)
    interrupted = drive(recovering(), stop(StopReason.INTERRUPT), Recovered(AT, ("c1",)))
    assert interrupted.state.status.reason is WaitReason.PAUSED


@EVERYWHERE
def test_a_run_whose_service_stops_is_due_at_once_and_counts_no_retry(place: str) -> None:
    decided = stopped(place, StopReason.SHUTDOWN)
    status = decided.state.status
    assert (status.state, status.reason, status.wake_at) == (RunState.WAITING, WaitReason.RETRY, AT)
    assert (status.retries, status.detail) == (0, "because shutdown")
    assert build_notice("n1", "run", SPEC, status, AT) is None


def test_a_service_that_stops_waits_for_no_probe_and_the_next_attempt_finds_the_doubts() -> None:
    decided = drive(working(retries=1), stop(StopReason.SHUTDOWN), ended(Failure.CRASHED, open_calls=1))
    assert (decided.commands, decided.state.status.reason) == ((), WaitReason.RETRY)
    assert decided.state.status.retries == 1
    stopped = drive(recovering(), stop(StopReason.SHUTDOWN), Recovered(AT, ("c1",)))
    assert stopped.state.status.reason is WaitReason.RETRY
    again = drive(MachineState("run", SPEC, stopped.state.status), Claimed(AT), Recovered(AT, ("c1",)))
    assert again.state.status.reason is WaitReason.IN_DOUBT


# --- effects in doubt at the end of a turn -----------------------------------------------------------------


def test_a_turn_that_ended_well_with_a_doubt_waits_and_after_the_answer_only_the_checks_are_left() -> None:
    parked = drive(working(), ended(open_calls=1), Recovered(AT, ("c1",)))
    status = parked.state.status
    assert (status.state, status.reason, status.goal) == (RunState.WAITING, WaitReason.IN_DOUBT, Phase.PROVING)
    answered = drive(MachineState("run", SPEC, status), Claimed(AT), SETTLED)
    assert answered.commands == (RunCheck(5, "make test"),)
    assert step(answered.state, CheckEnded(AT, 0)).state.status.state is RunState.SUCCEEDED


def test_an_effect_that_did_not_happen_gets_another_turn_after_the_answer() -> None:
    parked = drive(working(), ended(open_calls=1), Recovered(AT, ("c1",)))
    answered = drive(MachineState("run", SPEC, parked.state.status), Claimed(AT), Recovered(AT, undone=("c1",)))
    assert answered.commands == (StartTurn(5, 2, Role.WORK),)
    assert answered.state.status.goal is Phase.WORKING
    assert drive(answered.state, ended()).commands == (RunCheck(6, "make test"),)


@pytest.mark.parametrize(
    "happened",
    [
        (ended(open_calls=1), Recovered(AT, undone=("c1",))),  # a probe found it after the turn
        (ended()._replace(undone=("c1",)),),  # a person answered while the agent worked
    ],
)
def test_what_the_agent_does_not_know_starts_another_turn_instead_of_the_checks(
    happened: tuple[MachineInput, ...],
) -> None:
    decided = drive(working(), *happened)
    assert isinstance(decided.commands[0], StartTurn)
    assert kinds(decided)[-2:] == ["call.undone", "turn.started"]
    assert isinstance(drive(decided.state, ended()).commands[0], RunCheck)


@pytest.mark.parametrize(
    ("end", "recovered"),
    [
        (ended(Failure.AGENT_ERROR, open_calls=1), Recovered(AT, ("c1",))),
        (ended(session_lost=True, open_calls=1), Recovered(AT, ("c1",))),
        (ended(open_calls=1)._replace(forced=1), Recovered(AT, ("c1",))),
        (ended(open_calls=2), Recovered(AT, ("c1",), undone=("c2",))),
    ],
)
def test_after_a_doubt_unfinished_work_continues_with_a_turn(end: TurnEnded, recovered: Recovered) -> None:
    status = drive(working(), end, recovered).state.status
    assert (status.reason, status.goal) == (WaitReason.IN_DOUBT, Phase.WORKING)


def test_a_failure_stays_a_failure_also_if_an_effect_did_not_happen() -> None:
    decided = drive(working(), ended(Failure.AGENT_ERROR, open_calls=1), Recovered(AT, undone=("c1",)))
    assert (decided.state.status.state, decided.state.status.failure) == (RunState.FAILED, Failure.AGENT_ERROR)


# --- failures, limits and retries ------------------------------------------------------------------------


@pytest.mark.parametrize("failure", sorted(set(Failure) - TRANSIENT - {Failure.LIMIT}))
def test_a_lasting_failure_fails_the_run_with_its_class(failure: Failure) -> None:
    life = drive(working(), ended(failure, detail="why")).state.status
    assert (life.state, life.failure, life.detail) == (RunState.FAILED, failure, "why")


@pytest.mark.parametrize("failure", sorted(TRANSIENT))
def test_a_passing_failure_is_retried_up_to_the_cap_and_then_fails_with_its_class(failure: Failure) -> None:
    spec = SPEC._replace(retry=RetryPolicy(most=2))
    state = working(spec)
    for retry in (1, 2):
        decided = step(state, ended(failure, detail="again"))
        life = decided.state.status
        assert (life.state, life.reason, life.failure) == (RunState.WAITING, WaitReason.RETRY, failure)
        assert (life.retries, life.detail) == (retry, "again")
        assert life.wake_at == AT + compute_backoff_ms(spec.retry, retry, "run")
        state = drive(decided.state, Claimed(AT), SETTLED).state
        assert (state.status.failure, state.status.retries) == (None, retry)
    life = step(state, ended(failure)).state.status
    assert (life.state, life.failure) == (RunState.FAILED, failure)


def test_who_resumes_a_failed_run_has_all_retries_again() -> None:
    spec = SPEC._replace(retry=RetryPolicy(most=1))
    failed = drive(working(spec, retries=1), ended(Failure.CRASHED))
    assert failed.state.status.state is RunState.FAILED
    again = drive(failed.state, Claimed(AT), SETTLED, ended(Failure.CRASHED))
    assert (again.state.status.reason, again.state.status.retries) == (WaitReason.RETRY, 1)


def test_retries_are_counted_in_a_row() -> None:
    assert drive(working(retries=2), ended()).state.status.retries == 0
    assert drive(working(retries=2), ended(waits=WaitReason.HUMAN)).state.status.retries == 0


def test_no_retries_at_all() -> None:
    spec = SPEC._replace(retry=RetryPolicy(most=0))
    assert drive(working(spec), ended(Failure.CRASHED)).state.status.state is RunState.FAILED


def test_a_limit_with_a_reset_parks_the_run_until_then() -> None:
    life = drive(working(), ended(Failure.LIMIT, resets_at=AT + 7, detail="resets at 19:00")).state.status
    assert (life.state, life.reason, life.wake_at) == (RunState.WAITING, WaitReason.LIMIT, AT + 7)
    assert life.detail == "resets at 19:00"


@pytest.mark.parametrize("resets_at", [None, 0, AT - 1, AT])
def test_a_limit_without_a_time_to_come_waits_long_and_never_hammers(resets_at: int | None) -> None:
    life = drive(working(), ended(Failure.LIMIT, resets_at=resets_at)).state.status
    cap = SPEC.retry.cap_ms
    assert life.wake_at is not None
    assert AT + cap * 3 // 4 <= life.wake_at <= AT + cap


def test_a_limit_is_no_failure_and_uses_no_retry() -> None:
    life = drive(working(retries=1), ended(Failure.LIMIT)).state.status
    assert (life.failure, life.retries) == (None, 1)


@pytest.mark.parametrize("reason", [WaitReason.HUMAN, WaitReason.DEPENDENCY])
def test_an_agent_that_waits_parks_the_run(reason: WaitReason) -> None:
    life = drive(working(), ended(waits=reason, detail="which branch?")).state.status
    assert (life.state, life.reason, life.detail) == (RunState.WAITING, reason, "which branch?")


# --- budgets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wall_ms", "iterations", "calls", "usd_micros"])
def test_a_budget_that_is_spent_allows_no_first_turn(name: str) -> None:
    limited: dict[str, Any] = {name: 5}
    spec = SPEC._replace(limits=NO_LIMIT._replace(**limited))
    decided = drive(begun(spec, spent=Spent(**limited)), Claimed(AT), SETTLED)
    assert decided.state.status.reason is WaitReason.BUDGET
    what = "limit reached" if name == "iterations" else "budget spent"
    assert decided.state.status.detail.startswith(f"{what}: ")
    assert decided.state.status.turn == 0


def test_steps_are_cumulative_over_attempts() -> None:
    spec = SPEC._replace(limits=NO_LIMIT._replace(steps=4))
    second = drive(MachineState("run", spec, working(spec).status), Claimed(AT), SETTLED)
    assert second.commands == (StartTurn(4, 2, Role.WORK),)
    third = drive(MachineState("run", spec, second.state.status), Claimed(AT), SETTLED)
    assert third.state.status.detail == "budget spent: 5 of 4 steps"


def test_the_last_iteration_goes_on_after_a_crash() -> None:
    """It was counted when it began."""
    spec = SPEC._replace(limits=NO_LIMIT._replace(iterations=1))
    crashed = MachineState("run", spec, working(spec).status)
    assert isinstance(drive(crashed, Claimed(AT), SETTLED).commands[0], StartTurn)


def test_a_spent_budget_does_not_keep_finished_work_from_its_proof() -> None:
    spec = SPEC._replace(limits=NO_LIMIT._replace(usd_micros=5))
    decided = step(working(spec), TurnEnded(AT, Outcome(), Usage(usd_micros=9)))
    assert isinstance(decided.commands[0], RunCheck)


def test_a_budget_that_runs_out_in_the_middle_parks_and_stays_spent() -> None:
    """The detail has what was reported in the end, not what was estimated when it was stopped."""
    spec = SPEC._replace(limits=NO_LIMIT._replace(usd_micros=5_000_000, iterations=1))
    over = TurnEnded(AT, Outcome(Failure.CRASHED), Usage(usd_micros=6_000_000))
    parked = drive(working(spec), stop(StopReason.BUDGET, "budget spent: $7.00 of $5.00"), over)
    detail = "budget spent: $6.00 of $5.00"
    assert (parked.state.status.reason, parked.state.status.detail) == (WaitReason.BUDGET, detail)
    assert drive(parked.state, Claimed(AT), SETTLED).state.status.reason is WaitReason.BUDGET


def test_a_budget_of_another_kind_keeps_its_own_words() -> None:
    parked = drive(working(), stop(StopReason.BUDGET, "the day's budget is spent"), ended())
    assert parked.state.status.detail == "the day's budget is spent"


def test_a_provider_that_reports_a_limit_at_that_moment_does_not_wake_it() -> None:
    limited = TurnEnded(AT, Outcome(Failure.LIMIT, resets_at=AT + 5), Usage())
    assert drive(working(), stop(StopReason.BUDGET, "spent"), limited).state.status.wake_at is None


# --- what was cut off, and what waits for a person -------------------------------------------------------


def left(calls: int) -> TurnEnded:
    return ended()._replace(forced=calls)


def test_an_agent_that_leaves_undone_what_was_cut_off_is_told_again() -> None:
    decided = drive(working(), left(2))
    assert kinds(decided) == ["replay.left", "turn.started"]
    assert isinstance(decided.commands[0], StartTurn)


def test_after_three_such_turns_a_person_looks() -> None:
    decided = drive(working(), left(2), left(2), left(1))
    assert (decided.state.status.state, decided.state.status.reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "1 interrupted call in" in decided.state.status.detail


def test_once_it_is_made_again_the_work_goes_on() -> None:
    assert drive(working(), left(2), left(0)).state.status.phase is Phase.PROVING


def test_an_agent_that_does_not_listen_waits_for_a_person() -> None:
    decided = drive(working(), stop(StopReason.STUCK, "told 20 times"), left(1))
    assert (decided.state.status.reason, decided.state.status.detail) == (WaitReason.HUMAN, "told 20 times")


def test_a_resume_does_not_go_on_while_a_call_waits_for_a_word() -> None:
    decided = drive(recovering(), Recovered(AT, asked=("c1",), asked_at=AT - 5))
    assert (decided.state.status.reason, decided.commands) == (WaitReason.APPROVAL, ())
    assert decided.state.status.wake_at is None


def test_silence_becomes_an_answer_at_a_time_that_is_known() -> None:
    spec = SPEC._replace(approval_timeout_ms=100)
    decided = drive(recovering(spec), Recovered(AT, asked=("c1",), asked_at=AT - 5))
    assert decided.state.status.wake_at == AT + 95
    assert drive(working(spec), stop(StopReason.APPROVAL), ended()).state.status.wake_at == AT + 100
    assert drive(working(spec), ended(waits=WaitReason.APPROVAL)).state.status.wake_at == AT + 100


def test_a_cancel_does_not_wait_for_a_word() -> None:
    decided = drive(recovering(cancel_requested=True), Recovered(AT, asked=("c1",)))
    assert decided.state.status.state is RunState.CANCELLED


def test_a_doubt_is_told_before_a_question() -> None:
    decided = drive(recovering(), Recovered(AT, ("d1",), asked=("c1",)))
    assert decided.state.status.reason is WaitReason.IN_DOUBT


@pytest.mark.parametrize("why", [StopReason.WALL, StopReason.IDLE])
def test_what_a_turn_hung_in_when_its_time_ran_out_is_given_up(why: StopReason) -> None:
    assert drive(working(), stop(why), ended(open_calls=1)).commands == (Recover(3, gave_up=True),)


def test_what_a_crash_cut_off_is_not_given_up() -> None:
    assert drive(working(), ended(Failure.CRASHED, open_calls=1)).commands == (Recover(3, gave_up=False),)


def test_after_three_takeovers_without_anything_new_a_person_is_asked() -> None:
    crashed = begun(state=RunState.RUNNING, attempt=5)
    going_on = drive(crashed, Claimed(AT), Recovered(AT, takeovers=3))
    assert isinstance(going_on.commands[0], StartTurn)
    parked = drive(crashed, Claimed(AT), Recovered(AT, takeovers=4))
    assert (parked.state.status.state, parked.state.status.reason) == (RunState.WAITING, WaitReason.HUMAN)
    assert "died 4 times" in parked.state.status.detail
    assert not parked.commands


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({"commits": 1}, RunState.RUNNING),
        ({"doubts": ("c1",)}, RunState.WAITING),
        ({"asked": ("c1",)}, RunState.WAITING),
    ],
)
def test_a_commit_or_a_question_comes_before_the_count_of_takeovers(more: Any, state: RunState) -> None:
    decided = drive(begun(state=RunState.RUNNING), Claimed(AT), Recovered(AT, takeovers=9, **more))
    assert decided.state.status.state is state
    assert decided.state.status.reason is not WaitReason.HUMAN


def test_a_run_that_is_cancelled_ends_however_often_it_was_taken_over() -> None:
    asked = begun(state=RunState.RUNNING, cancel_requested=True)
    assert drive(asked, Claimed(AT), Recovered(AT, takeovers=9)).state.status.state is RunState.CANCELLED


def test_the_commits_of_a_cut_off_turn_are_in_the_event() -> None:
    (fact, *_) = drive(begun(state=RunState.RUNNING), Claimed(AT), Recovered(AT, commits=2)).facts
    assert fact.data == {"doubts": [], "commits": 2}
    (fact, *_) = drive(begun(state=RunState.RUNNING), Claimed(AT), SETTLED).facts
    assert fact.data == {"doubts": []}
