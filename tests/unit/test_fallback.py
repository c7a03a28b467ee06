"""Who takes over when an agent cannot go on: the next that is well, in a circle; else the run waits or fails."""

from __future__ import annotations

import pytest

from jackline.domain.agent_health import AgentHealth, build_health, find_resting_agents
from jackline.domain.limits import Limits, RetryPolicy
from jackline.domain.machine_state import MachineState, StepResult
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import RunStatus
from jackline.domain.run_inputs import Claimed, MachineInput, Recovered, StartTurn, TurnEnded
from jackline.domain.run_machine import step
from jackline.domain.spec import AgentOptions, Spec
from jackline.domain.states import Failure, RunState, WaitReason

AT = 1_000_000
SPEC = Spec("fix it", "/w", agent="claude", fallback=("codex", "gemini"), limits=Limits(), retry=RetryPolicy(0))


def drive(state: MachineState, *signals: MachineInput) -> StepResult:
    decided = StepResult(state)
    for signal in signals:
        decided = step(decided.state, signal)
    return decided


def working(agent: str = "claude", spec: Spec = SPEC, tired: dict[str, int] | None = None) -> StepResult:
    state = MachineState("run", spec, RunStatus(attempt=1, agent=agent))
    return drive(state, Claimed(AT), Recovered(AT, resting=tired or {}))


def ended(failure: Failure, tired: dict[str, int] | None = None, resets_at: int | None = None) -> TurnEnded:
    return TurnEnded(AT, Outcome(failure, "why", resets_at), Usage(), resting=tired or {})


@pytest.mark.parametrize(
    "failure",
    [
        Failure.LIMIT,
        Failure.OVERLOADED,
        Failure.CONNECTIVITY,
        Failure.AUTHENTICATION,
        Failure.BILLING,
        Failure.MODEL_NOT_FOUND,
        Failure.CONTEXT_TOO_LONG,
        Failure.UNAVAILABLE,
    ],
)
def test_the_next_agent_takes_over_in_the_middle_of_the_run(failure: Failure) -> None:
    decided = step(working().state, ended(failure))
    assert decided.state.status.agent == "codex"
    assert [type(one) for one in decided.commands] == [StartTurn]
    switched = decided.facts[0]
    assert (switched.kind, switched.data["from"], switched.data["to"]) == ("agent.switched", "claude", "codex")
    assert decided.state.status.state is RunState.RUNNING


@pytest.mark.parametrize(
    "failure", [Failure.AGENT_ERROR, Failure.NO_COMMIT, Failure.NO_TERMINAL_EVENT, Failure.CRASHED]
)
def test_what_another_agent_would_not_do_better_fails(failure: Failure) -> None:
    decided = step(working().state, ended(failure))
    assert (decided.state.status.state, decided.state.status.failure) == (RunState.FAILED, failure)


@pytest.mark.parametrize("failure", [Failure.AUTHENTICATION, Failure.BILLING])
def test_who_was_named_is_tried_although_it_was_refused_a_moment_ago(failure: Failure) -> None:
    known = [AgentHealth(one, failure, "", AT + 9, AT) for one in ("claude", "codex")]
    assert find_resting_agents(known, AT, named="claude") == {"codex": AT + 9}
    assert find_resting_agents(known, AT) == {"claude": AT + 9, "codex": AT + 9}


@pytest.mark.parametrize("failure", [Failure.LIMIT, Failure.OVERLOADED, Failure.CONNECTIVITY])
def test_what_passes_by_itself_is_waited_for_whoever_was_named(failure: Failure) -> None:
    assert find_resting_agents([AgentHealth("claude", failure, "", AT + 9, AT)], AT, named="claude") == {
        "claude": AT + 9
    }


def test_an_agent_that_rests_is_passed_over() -> None:
    decided = step(working().state, ended(Failure.LIMIT, {"codex": AT + 1, "claude": AT + 9}))
    assert decided.state.status.agent == "gemini"


def test_an_agent_whose_rest_is_over_is_taken() -> None:
    assert step(working().state, ended(Failure.LIMIT, {"codex": AT})).state.status.agent == "codex"


def test_after_the_last_comes_the_first_again() -> None:
    assert step(working("gemini").state, ended(Failure.LIMIT)).state.status.agent == "claude"


def test_each_agent_gives_up_once_in_an_attempt() -> None:
    decided = drive(working().state, ended(Failure.UNAVAILABLE), ended(Failure.BILLING), ended(Failure.AUTHENTICATION))
    assert (decided.state.status.state, decided.state.status.failure) == (RunState.FAILED, Failure.AUTHENTICATION)


def test_a_broken_fallback_does_not_turn_a_limit_into_a_failure() -> None:
    """Without the other two the run would wait for the limit to end; with them it must not do worse."""
    limited = ended(Failure.LIMIT, resets_at=AT + 9_000)
    decided = drive(working().state, limited, ended(Failure.UNAVAILABLE), ended(Failure.AUTHENTICATION))
    life = decided.state.status
    assert (life.state, life.reason, life.wake_at) == (RunState.WAITING, WaitReason.LIMIT, AT + 9_000)


def test_an_agent_whose_limit_has_ended_takes_over_again() -> None:
    first = step(working().state, ended(Failure.LIMIT, resets_at=AT + 1_000))
    gone = drive(first.state, ended(Failure.UNAVAILABLE))
    later = TurnEnded(AT + 100_000, Outcome(Failure.LIMIT, "why", AT + 10**7), Usage())
    assert step(gone.state, later).state.status.agent == "claude"


def test_an_agent_whose_limit_ended_just_now_is_not_handed_the_run_at_once() -> None:
    first = step(working().state, ended(Failure.LIMIT, resets_at=AT + 1_000))
    gone = drive(first.state, ended(Failure.UNAVAILABLE))
    later = TurnEnded(AT + 2_000, Outcome(Failure.LIMIT, "why", AT + 10**7), Usage())
    assert step(gone.state, later).state.status.state is RunState.WAITING


def test_who_only_rested_may_take_over_later_in_the_same_attempt() -> None:
    spec = SPEC._replace(fallback=("codex",))
    begun = working(spec=spec, tired={"claude": AT + 1})
    assert begun.state.status.agent == "codex"
    later = TurnEnded(AT + 5, Outcome(Failure.LIMIT, "why"), Usage())
    assert step(begun.state, later).state.status.agent == "claude"


def test_two_agents_do_not_hand_a_failure_to_and_fro_without_end() -> None:
    """The network is down: as many retries as one agent would have, however many there are."""
    spec = SPEC._replace(fallback=("codex",), retry=RetryPolicy(2))
    state, attempts = MachineState("run", spec, RunStatus(attempt=1, agent="claude")), 0
    while state.status.state is not RunState.FAILED:
        attempts += 1
        assert attempts < 10
        decided = drive(state, Claimed(AT), Recovered(AT))
        while decided.state.status.state is RunState.RUNNING:
            decided = step(decided.state, ended(Failure.CONNECTIVITY, {decided.state.agent: AT + 1}))
        state = MachineState("run", spec, decided.state.status)
    assert attempts == 3


def test_where_everybody_is_limited_the_run_waits_for_the_first_to_be_well() -> None:
    tired = {"codex": AT + 500, "gemini": AT + 900}
    decided = step(working().state, ended(Failure.LIMIT, tired, resets_at=AT + 7_000))
    life = decided.state.status
    assert (life.state, life.reason, life.wake_at) == (RunState.WAITING, WaitReason.LIMIT, AT + 500)


def test_a_run_that_comes_back_leaves_a_resting_agent_alone() -> None:
    decided = working(tired={"claude": AT + 1})
    assert decided.state.status.agent == "codex"
    assert "agent.switched" in [fact.kind for fact in decided.facts]


def test_who_resumes_with_nobody_else_left_tries_the_resting_one() -> None:
    alone = SPEC._replace(fallback=())
    decided = working(spec=alone, tired={"claude": AT + 1})
    assert decided.state.status.agent == "claude"
    assert decided.commands


def test_a_lost_session_is_said_and_a_fresh_one_begins() -> None:
    decided = step(working().state, TurnEnded(AT, Outcome(detail="unknown", session_lost=True), Usage()))
    assert decided.facts[0].kind == "session.lost"
    assert decided.facts[0].data == {"agent": "claude", "detail": "unknown"}
    assert isinstance(decided.commands[0], StartTurn)


# --- health ----------------------------------------------------------------------------------------------


def test_a_named_reset_is_honoured() -> None:
    assert build_health("a", Outcome(Failure.LIMIT, "d", resets_at=AT + 5), AT) == AgentHealth(
        "a", "limit", "d", AT + 5, AT
    )


def test_a_reset_in_the_past_is_none() -> None:
    known = build_health("a", Outcome(Failure.LIMIT, resets_at=AT - 5), AT)
    assert known is not None
    assert known.until > AT


def test_success_ends_every_rest() -> None:
    assert build_health("a", Outcome(), AT) == AgentHealth("a", at=AT)


@pytest.mark.parametrize("failure", [Failure.AGENT_ERROR, Failure.TIMEOUT, Failure.MODEL_NOT_FOUND, Failure.CRASHED])
def test_what_is_the_turns_own_affair_says_nothing_of_the_agent(failure: Failure) -> None:
    assert build_health("a", Outcome(failure), AT) is None


def test_only_who_is_not_well_yet_rests() -> None:
    known = [AgentHealth("a", "limit", "", AT + 1, 0), AgentHealth("b", "limit", "", AT, 0), AgentHealth("c", at=AT)]
    assert find_resting_agents(known, AT) == {"a": AT + 1}


def test_a_spec_with_agents_and_their_manners_comes_back_as_it_was() -> None:
    manner = AgentOptions("m", "high", ("--x", "1"), ("TOKEN",))
    spec = SPEC._replace(
        agent_options={"claude": manner, "codex": AgentOptions()}, session="s", requires_commit=True, job="{}"
    )
    assert Spec.from_dict(spec.to_dict()) == spec
