"""Decides whether a run may start now, or waits for the limits of its agents. Pure.

After a limit has reset, one run is let through first. The others follow once its agent has shown that the limit is
over, so that ten runs do not each meet the same limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import sha256
from jackline.domain.agent_health import find_resting_agents, is_limited
from jackline.domain.states import WaitReason
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.agent_health import AgentHealth

_SPREAD_MS = 30_000  # runs that wait for the same moment start within this time after it
_SPREAD_OUT = frozenset({WaitReason.LIMIT, WaitReason.BUDGET})  # many runs wait for the same moment
_PROBE_MS = 120_000  # a limit shows in the first seconds of a turn
# The time of an approval is that of its answer, whatever the agent does.
_DELAYED = frozenset({WaitReason.LIMIT, WaitReason.RETRY, WaitReason.BUDGET, WaitReason.DEPENDENCY})


class DueCandidate(NamedTuple):
    """A run that may continue without a person; without a reason it was answered."""

    run_id: str
    agent: str
    reason: WaitReason | None
    wake_at: int | None
    attempt: int


class LimitProbe(NamedTuple):
    """The run that was let through first after a limit of its agent had reset."""

    agent: str
    reset_at: int
    run_id: str
    taken_at: int
    is_running: bool = False
    has_stopped: bool = False  # it was worked on since, and is no longer


class StartDecision(NamedTuple):
    """Whether a run may start; if not, when to ask again."""

    starts: bool
    again_at: int = 0
    waits_for_probe: bool = False  # it may end sooner: another run tries the limit
    probes: str = ""  # the agent whose limit it tries first


def find_free_time(agents: Sequence[str], health: Mapping[str, AgentHealth]) -> int:
    """When the first of the agents can be used, if all rest and one of them for a limit; 0 if there is no such time."""
    if not any(is_limited(health.get(agent)) for agent in agents):
        return 0
    resting = find_resting_agents(health.values(), 0, agents[0])
    return min(resting.get(agent, 0) for agent in agents)


def find_wake_time(
    wake_at: int | None, reason: str | None, agents: Sequence[str], health: Mapping[str, AgentHealth]
) -> int | None:
    """When a waiting run continues: at its own time, or later if another run has found that its agents rest longer."""
    return wake_at if wake_at is None or reason not in _DELAYED else max(wake_at, find_free_time(agents, health))


def find_spread_out(due: Sequence[DueCandidate], at: int) -> set[str]:
    """The runs that wait some seconds more, because others wait for the same moment: a limit or the next day."""
    waiting = [one for one in due if one.reason in _SPREAD_OUT]
    if len(waiting) == 1:
        return set()
    return {one.run_id for one in waiting if (one.wake_at or 0) + compute_spread_ms(one.run_id) > at}


def compute_spread_ms(run_id: str) -> int:
    """How long a run waits after a moment for which others wait, too: always the same for the same run."""
    return int.from_bytes(sha256(run_id.encode()).digest()[:2], "big") * _SPREAD_MS // 0x10000


def decide_start(
    run_id: str,
    agents: Sequence[str],
    agent: str,
    health: Mapping[str, AgentHealth],
    probes: Mapping[str, LimitProbe],
    at: int,
) -> StartDecision:
    """Decide about one run; `agents` may work on it in this order, and `agent` did last."""
    free_at = find_free_time(agents, health)
    if free_at > at:
        return StartDecision(starts=False, again_at=free_at)
    used = health.get(_choose_agent(agents, agent, health, at))
    if used is None or not is_limited(used) or used.until > at:
        return StartDecision(starts=True)
    probe = probes.get(used.agent)
    if probe is None or probe.reset_at != used.until or probe.run_id == run_id or probe.has_stopped:
        return StartDecision(starts=True, probes=used.agent)
    if probe.taken_at + _PROBE_MS > at:
        return StartDecision(starts=False, again_at=probe.taken_at + _PROBE_MS, waits_for_probe=True)
    return StartDecision(starts=True, probes="" if probe.is_running else used.agent)


def _choose_agent(agents: Sequence[str], agent: str, health: Mapping[str, AgentHealth], at: int) -> str:
    """The agent that the run machine would use: the last one, else the next that does not rest."""
    resting = find_resting_agents(health.values(), at, agents[0])
    here = agents.index(agent) if agent in agents else 0
    ring = (*agents[here:], *agents[:here])
    return next((one for one in ring if one not in resting), agent)
