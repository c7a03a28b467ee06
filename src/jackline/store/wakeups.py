"""Reads the waiting runs that are due, and the answered ones that no process has continued. Claims are in `leases`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from jackline.domain.limit_gate import DueCandidate, LimitProbe, find_free_time, find_wake_time
from jackline.domain.states import RunState, WaitReason
from jackline.store.driver import Statements, clean
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.records import Run

# What ends without a person. A paused run, one that needs a person and one in doubt wait for as long as it takes.
_WAKES = {
    "limited": WaitReason.LIMIT,
    "retry": WaitReason.RETRY,
    "approval": WaitReason.APPROVAL,
    "budget": WaitReason.BUDGET,
    "dependency": WaitReason.DEPENDENCY,
}
_QUEUED = str(RunState.QUEUED)
_WORDS = {"waiting": str(RunState.WAITING), **{name: str(reason) for name, reason in _WAKES.items()}}


class _Listed(Protocol):
    """A row of a list of runs."""

    @property
    def id(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def wake_at(self) -> int | None: ...

    def _replace(self, *, wake_at: int | None) -> Self: ...


RowT = TypeVar("RowT", bound=_Listed)


class Wakeups(StorePart):
    """The part of the store with the runs that continue without a person."""

    def list_due(self, at: int, limit: int = 100) -> list[DueCandidate]:
        """The waiting runs whose time has come, the longest due first."""
        return [_parse(row) for row in self._all("due_runs", {**_WORDS, "at": at, "limit": max(0, limit)})]

    def list_answered(self, limit: int = 100) -> list[DueCandidate]:
        """The runs that have begun, were answered, and that no process has continued since; the oldest answer first."""
        return [_parse(row) for row in self._all("answered_runs", {"queued": _QUEUED, "limit": max(0, limit)})]

    def find_next_wake(self, after: int) -> int | None:
        """The first time after `after` at which a waiting run is due."""
        row = self._one("next_wake", {**_WORDS, "after": after})
        return row[0] if row else None

    # when a run continues, as it is shown

    def adjust_wake_time(self, run: Run) -> Run:
        """The run with the time at which it continues: its own, or later if its agents rest longer."""
        status = run.status
        if status.wake_at is None:
            return run
        wake_at = find_wake_time(status.wake_at, status.reason, run.spec.agents, self._store.records.get_health())
        return run._replace(status=status._replace(wake_at=wake_at))

    def adjust_wake_times(self, found: Sequence[RowT]) -> list[RowT]:
        """The same for rows of a list."""
        if not any(row.wake_at is not None for row in found):
            return list(found)
        health = self._store.records.get_health()
        return [self._adjust_row(row, health) for row in found]

    def find_reset(self, run: Run) -> int:
        """When the first of the run's agents can be used again, if all rest and one of them for a limit; else 0."""
        return find_free_time(run.spec.agents, self._store.records.get_health())

    def find_resets(self, run_ids: Iterable[str], at: int) -> dict[str, int]:
        """The runs whose agents all rest after a limit, each with the time when the first can be used again."""
        health = self._store.records.get_health()
        if not any(one.until > at for one in health.values()):
            return {}
        runs = filter(None, map(self._store.runs.get, run_ids))
        resets = {run.id: find_free_time(run.spec.agents, health) for run in runs}
        return {run_id: reset for run_id, reset in resets.items() if reset > at}

    def _adjust_row(self, row: RowT, health: Mapping[str, AgentHealth]) -> RowT:
        # Only a run whose last agent rests longer needs its other agents, which are in its spec.
        if find_wake_time(row.wake_at, row.reason, (row.agent,), health) == row.wake_at:
            return row
        run = self._store.runs.get(row.id)
        agents = (row.agent,) if run is None else run.spec.agents
        return row._replace(wake_at=find_wake_time(row.wake_at, row.reason, agents, health))

    # limits

    def list_probes(self) -> list[LimitProbe]:
        """The runs that were let through first after a limit, one for each agent."""
        found = self._all("all_probes", {"running": str(RunState.RUNNING)})
        return [LimitProbe(*row)._replace(is_running=bool(row[4]), has_stopped=bool(row[5])) for row in found]

    def take_probe(self, agent: str, reset_at: int, run_id: str, at: int, seen: LimitProbe | None) -> bool:
        """Let the run through first; False if another one was since `seen`, or the agent met another limit."""
        values = {"agent": clean(agent), "reset_at": reset_at, "run_id": clean(run_id), "at": at}
        values |= {"seen_run": seen.run_id if seen else "", "seen_at": seen.taken_at if seen else -1}

        def take(statements: Statements) -> bool:
            return statements.run("take_probe", values) > 0

        return self._driver.write(take)


def _parse(row: tuple[object, ...]) -> DueCandidate:
    run_id, agent, reason, wake_at, attempt = row
    return DueCandidate(
        run_id=str(run_id),
        agent=str(agent),
        reason=WaitReason(str(reason)) if reason else None,
        wake_at=wake_at if isinstance(wake_at, int) else None,
        attempt=attempt if isinstance(attempt, int) else 0,
    )
