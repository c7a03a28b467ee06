"""Which agent continues when one cannot, and how long to wait when none can. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.limits import compute_backoff_ms
from jackline.domain.machine_state import StepResult, park_run
from jackline.domain.states import Failure, Phase, WaitReason

if TYPE_CHECKING:
    from jackline.domain.machine_state import MachineState

# Failures of this agent's account, provider, model or program: another agent may succeed.
FALLBACK_FAILURES = frozenset(
    {
        Failure.LIMIT, Failure.OVERLOADED, Failure.CONNECTIVITY, Failure.AUTHENTICATION, Failure.BILLING,
        Failure.MODEL_NOT_FOUND, Failure.CONTEXT_TOO_LONG, Failure.UNAVAILABLE,
    }
)  # fmt: skip
MOST_WINDOWS = 5  # limits of a provider for which a run waits; then a person is asked
_AFTER_LIMIT_MS = 60_000  # agents with short limits must not pass a run back and forth


def switch_agent(state: MachineState, why: str, at: int, *, tried: bool = True) -> tuple[MachineState, Fact] | None:
    """Switch to the next agent, round-robin, that has not given up in this attempt and is not resting."""
    agents = state.spec.agents
    recovered = {agent for agent, reset in state.limit_resets.items() if 0 < reset <= at - _AFTER_LIMIT_MS}
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
    return state._replace(status=status, given_up=kept), fact


def wait_for_limit(state: MachineState, detail: str, at: int) -> StepResult:
    """Wait until a limit resets; after some of them in a row, a person decides whether the run is worth it."""
    windows = state.status.windows
    if windows >= MOST_WINDOWS:
        since = f"it has waited for {windows} limits since a person last continued it"
        return park_run(state, WaitReason.HUMAN, f"{detail}; {since}: `jackline resume {state.run_id}` continues it")
    waiting = state._replace(status=state.status._replace(windows=windows + 1))
    return park_run(waiting, WaitReason.LIMIT, detail, compute_resume_time(state, at))


def compute_resume_time(state: MachineState, at: int) -> int:
    """When to try again: when the first agent can be used, as far as is known, else after a backoff that grows."""
    # For the run's current agent the known reset counts, not how long it rests otherwise.
    agent = state.next_agent
    candidates = (agent,) if state.status.goal is Phase.REVIEWING else state.spec.agents
    others = [one for one in candidates if one != agent or state.limit_resets.get(one) == 0]
    limits = [reset for one, reset in state.limit_resets.items() if one in candidates]
    resets = [time for time in (*limits, *(state.resting.get(one, 0) for one in others)) if time > at]
    if resets:
        return min(resets)
    cap, windows = state.spec.retry.cap_ms, state.status.windows
    growing = state.spec.retry._replace(base_ms=cap, cap_ms=cap << windows)
    return at + compute_backoff_ms(growing, windows + 1, state.run_id)
