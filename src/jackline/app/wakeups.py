"""Lists the runs that a service continues without a person, and lets them start without meeting the same limit.

It claims nothing: `Home.make_attempt` does, and refuses a run that another process has taken up meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.clock import host_name
from jackline.domain.limit_gate import LimitProbe, decide_start, find_spread_out
from jackline.domain.limits import count_units
from jackline.domain.states import RunState, WaitReason
from jackline.engine.owner_lock import has_waiter
from jackline.engine.workspace_guard import continues_itself, is_of_this_boot
from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.limit_gate import DueCandidate
    from jackline.domain.records import Run

_MOST = 1000
_BUDGET_MS = 60_000


def list_due(home: Home, at: int) -> list[DueCandidate]:
    """The runs to continue now, the longest due first, then the answered ones.

    A run that a living process of this host waits for, or is about to try again, is left to that process; and one that
    another host began in a shared database to that host. Runs that wait for the same moment start within half a minute
    after it, and those that wait for the day's budget stay while nothing is left of it. The claim applies the default
    answer of an approval whose time is over.
    """
    if home.is_new:
        return []
    wakeups = home.store().wakeups
    due = wakeups.list_due(at, _MOST)
    later = find_spread_out(due, at)
    if any(one.reason is WaitReason.BUDGET for one in due) and not _has_day_budget(home, at):
        later |= {one.run_id for one in due if one.reason is WaitReason.BUDGET}
    found = [*(one for one in due if one.run_id not in later), *wakeups.list_answered(_MOST)]
    return _leave_to_others(home, found)


def find_next_wake(home: Home, after: int) -> int | None:
    """The first time after `after` at which a waiting run is due."""
    return None if home.is_new else home.store().wakeups.find_next_wake(after)


def _has_day_budget(home: Home, at: int) -> bool:
    """Whether a turn could reserve something of the day's budget."""
    limit = count_units(home.config.get_float("max_usd_per_day"), 1_000_000)
    return not limit or home.store().spending.find_rest(limit, at) > 0


def _leave_to_others(home: Home, found: list[DueCandidate]) -> list[DueCandidate]:
    """The runs that no living process will continue, as far as this host can tell."""
    attempts = {one.attempt.run_id: one.attempt for one in home.store().records.list_holders([r.run_id for r in found])}
    is_shared, host, kept = home.has_database_server, host_name(), []
    for one in found:
        attempt = attempts.get(one.run_id)
        if attempt is None or (is_shared and attempt.host != host) or has_waiter(home.folder(one.run_id)):
            continue
        is_retry = one.reason is WaitReason.RETRY and is_of_this_boot(attempt)
        if not (is_retry and continues_itself(attempt, one.wake_at or 0)):
            kept.append(one)
    return kept


def waits_for_day_budget(home: Home, run: Run, at: int) -> bool:
    """Whether the run's first turn would find that the day's budget is spent; an agent without costs needs none."""
    return not _has_day_budget(home, at) and _has_costs(home, run)


def _has_costs(home: Home, run: Run) -> bool:
    from jackline.app.agents import load_adapter

    try:
        declaration = load_adapter(home.config, run.agent).declaration
    except (AgentUnavailable, UsageError):  # the attempt reports it
        return False
    return bool(declaration.tokens or declaration.cost)


class LimitGate:
    """Lets runs start unless their agents rest after a limit; several services may ask at once.

    A queued run also waits while the day's budget is spent.

    Open one for each look for work, and ask about each run that is not lost just before it starts, in the order of the
    candidates and only if nothing else keeps it from starting. `again_at` is when to ask again about the run that was
    refused last, or 0 if that depends on other runs; before, it is refused as long as `facts` are the same.
    """

    def __init__(self, home: Home, at: int) -> None:
        """Read the health of all agents once."""
        self._home, self._wakeups, self._at = home, home.store().wakeups, at
        self._health = home.store().records.get_health()
        self._probes = {one.agent: one for one in self._wakeups.list_probes()} if self._health else {}
        self._has_budget = _has_day_budget(home, at)
        self.facts = (self._health, self._has_budget)
        self.again_at = 0

    def lets_start(self, run: Run) -> bool:
        """Whether the run may start now. The first one after a limit is recorded: the others wait for its agent."""
        self.again_at = 0
        if run.status.state is RunState.QUEUED and not self._has_budget and _has_costs(self._home, run):
            self.again_at = self._at + _BUDGET_MS
            return False
        decided = decide_start(run.id, run.spec.agents, run.agent, self._health, self._probes, self._at)
        if not decided.starts:
            self.again_at = 0 if decided.waits_for_probe else decided.again_at
            return False
        if not decided.probes:
            return True
        agent, seen = self._health[decided.probes], self._probes.get(decided.probes)
        is_taken = self._wakeups.take_probe(agent.agent, agent.until, run.id, self._at, seen)
        # Even if another service was faster: a run is let through now.
        self._probes[agent.agent] = LimitProbe(agent.agent, agent.until, run.id if is_taken else "", self._at)
        return is_taken
