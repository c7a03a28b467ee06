"""Who may start after a limit: one run first, the others once it works; and when a waiting run continues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.agent_health import AgentHealth, build_health
from jackline.domain.limit_gate import (
    DueCandidate,
    LimitProbe,
    StartDecision,
    compute_spread_ms,
    decide_start,
    find_free_time,
    find_spread_out,
    find_wake_time,
)
from jackline.domain.outcome import Outcome
from jackline.domain.states import Failure, WaitReason

AT = 1_000_000_000
MINUTE = 60_000
HALF_A_MINUTE = 30_000


def limited(agent: str, until: int, failure: Failure = Failure.LIMIT, at: int = AT) -> AgentHealth:
    return AgentHealth(agent, str(failure), "why", until, at)


def known(*health: AgentHealth) -> dict[str, AgentHealth]:
    return {one.agent: one for one in health}


def decide(
    run_id: str, at: int, *health: AgentHealth, agents: str = "claude", probe: LimitProbe | None = None
) -> StartDecision:
    ring = tuple(agents.split())
    return decide_start(run_id, ring, ring[0], known(*health), {probe.agent: probe} if probe else {}, at)


# when


def test_one_agent_of_several_that_is_free_lets_the_run_continue() -> None:
    health = known(limited("claude", AT + 9), limited("codex", AT + 5))
    assert find_free_time(("claude", "codex"), health) == AT + 5
    assert find_free_time(("claude", "codex", "gemini"), health) == 0
    assert find_free_time(("claude",), health) == AT + 9


def test_only_a_limit_delays_a_run() -> None:
    """A connection that is tried again in seconds must not wait for minutes."""
    assert find_free_time(("claude",), known(limited("claude", AT + 9, Failure.CONNECTIVITY))) == 0
    both = known(limited("claude", AT + 9), limited("codex", AT + 5, Failure.OVERLOADED))
    assert find_free_time(("claude", "codex"), both) == AT + 5


@pytest.mark.parametrize("reason", WaitReason)
def test_a_waiting_run_continues_when_its_agent_can_be_used(reason: WaitReason) -> None:
    health = known(limited("claude", AT + 9))
    delayed = reason in {WaitReason.LIMIT, WaitReason.RETRY, WaitReason.BUDGET, WaitReason.DEPENDENCY}
    assert find_wake_time(AT, reason, ("claude",), health) == (AT + 9 if delayed else AT)
    assert find_wake_time(AT + 10, reason, ("claude",), health) == AT + 10
    assert find_wake_time(None, reason, ("claude",), health) is None


def test_runs_that_wait_for_the_same_moment_start_one_after_the_other() -> None:
    delays = {compute_spread_ms(f"run-{number}") for number in range(50)}
    assert len(delays) == 50
    assert all(0 <= delay < HALF_A_MINUTE for delay in delays)
    for reason in (WaitReason.LIMIT, WaitReason.BUDGET):
        due = [DueCandidate(f"run-{number}", "claude", reason, AT, 1) for number in range(2)]
        first, second = sorted((compute_spread_ms(one.run_id), one.run_id) for one in due)
        assert find_spread_out(due, AT + first[0]) == {second[1]}
        assert find_spread_out(due, AT + second[0]) == set()
        assert find_spread_out(due[:1], AT) == set(), "one that waits alone starts at once"
    answers = [DueCandidate(f"run-{number}", "claude", WaitReason.APPROVAL, AT, 1) for number in range(2)]
    assert find_spread_out(answers, AT) == set()


# who


def test_without_a_limit_every_run_starts() -> None:
    assert decide("run", AT) == StartDecision(starts=True)
    assert decide("run", AT, AgentHealth("claude", at=AT)) == StartDecision(starts=True)
    assert decide("run", AT, limited("claude", AT + 9, Failure.OVERLOADED)) == StartDecision(starts=True)


def test_no_run_starts_before_the_reset() -> None:
    health, reset = limited("claude", AT + MINUTE), AT + MINUTE
    assert decide("run", reset - 1, health) == StartDecision(starts=False, again_at=reset)
    assert decide("run", reset, health) == StartDecision(starts=True, probes="claude")


def test_a_run_with_a_free_fallback_starts_at_once() -> None:
    health = limited("claude", AT + MINUTE)
    assert decide("run", AT, health, agents="claude codex") == StartDecision(starts=True)


def test_after_a_reset_one_run_is_let_through_and_the_others_wait_for_it() -> None:
    now, health = AT + HALF_A_MINUTE, limited("claude", AT)
    assert decide("first", now, health).probes == "claude"
    probe = LimitProbe("claude", AT, "first", now, is_running=True)
    assert decide("second", now + 1, health, probe=probe) == StartDecision(
        starts=False, again_at=now + 2 * MINUTE, waits_for_probe=True
    )
    assert decide("first", now + 1, health, probe=probe).starts, "the same run may be started by another service"
    healthy = AgentHealth("claude", at=now + 2)
    assert decide("second", now + 3, healthy, probe=probe) == StartDecision(starts=True)


def test_the_next_limit_needs_another_run_that_is_let_through() -> None:
    again = limited("claude", AT + MINUTE)
    old = LimitProbe("claude", AT, "first", AT, is_running=False, has_stopped=True)
    assert decide("second", AT + 2 * MINUTE, again, probe=old) == StartDecision(starts=True, probes="claude")


def test_a_run_that_stopped_for_another_reason_gives_its_place_to_the_next() -> None:
    health, now = limited("claude", AT), AT + HALF_A_MINUTE
    stopped = LimitProbe("claude", AT, "first", now, has_stopped=True)
    assert decide("second", now + 1, health, probe=stopped) == StartDecision(starts=True, probes="claude")
    never_began = LimitProbe("claude", AT, "first", now)
    assert not decide("second", now + 1, health, probe=never_began).starts
    assert decide("second", now + 2 * MINUTE, health, probe=never_began).probes == "claude"


def test_a_run_that_works_for_two_minutes_has_met_no_limit() -> None:
    health, now = limited("claude", AT), AT + HALF_A_MINUTE
    works = LimitProbe("claude", AT, "first", now, is_running=True)
    assert decide("second", now + 2 * MINUTE, health, probe=works) == StartDecision(starts=True)


@given(st.integers(0, 3 * MINUTE), st.integers(2, 12))
def test_of_many_runs_at_most_one_meets_the_limit(later: int, count: int) -> None:
    """Each decision is made with what the one before has recorded."""
    now, health = AT + later, known(limited("claude", AT))
    probes: dict[str, LimitProbe] = {}
    started = []
    for number in range(count):
        run_id = f"run-{number}"
        decided = decide_start(run_id, ("claude",), "claude", health, probes, now)
        if decided.starts:
            started.append(run_id)
            probes[decided.probes] = LimitProbe("claude", AT, run_id, now)
    assert len(started) == 1


# how long an agent rests


def test_an_agent_without_a_known_reset_rests_longer_each_time() -> None:
    health, at, rests = None, AT, []
    for _ in range(6):
        health = build_health("claude", Outcome(Failure.LIMIT, "why"), at, health)
        assert health is not None
        rests.append((health.until - at) // MINUTE)
        at = health.until
    assert rests == [15, 30, 60, 120, 240, 240]


def test_trying_again_during_a_rest_does_not_make_it_longer() -> None:
    first = build_health("claude", Outcome(Failure.LIMIT, "why"), AT)
    assert first is not None
    again = build_health("claude", Outcome(Failure.LIMIT, "why"), AT + MINUTE, first)
    assert again is not None
    assert again.until == first.until


def test_a_known_reset_counts_whatever_was_before() -> None:
    health = build_health("claude", Outcome(Failure.LIMIT, "why", AT + 7), AT, limited("claude", AT + 9 * MINUTE))
    assert health is not None
    assert health.until == AT + 7


def test_a_turn_that_began_before_the_limit_does_not_end_it() -> None:
    limit = limited("claude", AT + MINUTE, at=AT)
    assert build_health("claude", Outcome(), AT + 5, limit, started_at=AT - 5) is None
    assert build_health("claude", Outcome(), AT + 5, limit, started_at=AT + 1) == AgentHealth("claude", at=AT + 5)
    older = limited("claude", AT + MINUTE, Failure.OVERLOADED)
    assert build_health("claude", Outcome(), AT + 5, older, started_at=AT - 5) == AgentHealth("claude", at=AT + 5)
