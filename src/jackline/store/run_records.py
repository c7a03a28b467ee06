"""Reads of the records of runs: events, turns, attempts, checks, checkpoints, notices. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Event
from jackline.domain.records import Attempt, Check, Checkpoint, Notice, Turn
from jackline.domain.states import RunState, WaitReason
from jackline.store import rows
from jackline.store.driver import clean
from jackline.store.models import Holder, TmuxSession
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.changes import Changes


_HOLDERS_AT_ONCE = 500  # below the databases' limits for parameters


class RunRecords(StorePart):
    """The part of the store that reads the records of runs."""

    def list_events(self, stream: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events with a sequence above `after`."""
        values = {"stream": clean(stream), "after": after, "limit": max(0, limit)}
        return [Event(*row) for row in self._all("some_events", values)]

    def list_recovery_events(self, run_id: str) -> list[Event]:
        """The claims of a run and the ends of its recoveries, oldest first."""
        values = {"stream": clean(run_id), "claimed": "run.claimed", "recovered": "recovery.ended"}
        return [Event(*row) for row in self._all("recovery_events", values)]

    def find_last_event(self, run_id: str, kind: str) -> Event | None:
        """The newest event of this kind."""
        row = self._one("last_event_of_kind", {"stream": clean(run_id), "kind": kind})
        return Event(*row) if row else None

    def list_turns(self, run_id: str) -> list[Turn]:
        """The turns of a run."""
        return [rows.parse_turn(row) for row in self._all("all_turns", {"run_id": clean(run_id)})]

    def list_attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run."""
        return [Attempt(*row) for row in self._all("all_attempts", {"run_id": clean(run_id)})]

    def list_holders(self, run_ids: Sequence[str]) -> list[Holder]:
        """The newest attempt of each of these runs, and whether its lease is over; one read for a page of runs."""
        pages = (run_ids[start : start + _HOLDERS_AT_ONCE] for start in range(0, len(run_ids), _HOLDERS_AT_ONCE))
        return [holder for page in pages for holder in self._read_holders(page)]

    def list_working(self) -> list[Holder]:
        """The newest attempt of each run that is running, or waits for its next try."""
        words = {"running": RunState.RUNNING, "waiting": RunState.WAITING, "retry": WaitReason.RETRY}
        values = {name: str(word) for name, word in words.items()}
        return self.list_holders([run_id for (run_id,) in self._all("working_runs", values)])

    def _read_holders(self, run_ids: Sequence[str]) -> list[Holder]:
        ids = {f"id_{place}": clean(one) for place, one in enumerate(run_ids)}
        sql = (
            f"SELECT {', '.join(f'attempts.{name}' for name in rows.columns('attempt'))}, "  # noqa: S608 - parameters
            "CASE WHEN runs.lease_boot = :clock_boot AND runs.lease_until > :clock_now THEN 0 ELSE 1 END "
            "FROM runs JOIN attempts ON attempts.run_id = runs.id AND attempts.token = runs.token "
            f"WHERE runs.id IN ({', '.join(f':{name}' for name in ids)})"
        )
        found = self._driver.read(lambda statements: statements.listing(sql, {**statements.clock(), **ids}))
        return [Holder(attempt=Attempt(*row[:-1]), is_lease_over=bool(row[-1])) for row in found]

    def list_checks(self, run_id: str) -> list[Check]:
        """The checks of a run."""
        return [Check(*row) for row in self._all("all_checks", {"run_id": clean(run_id)})]

    def get_sessions(self, run_id: str) -> dict[str, str]:
        """The provider's session of each agent of the run."""
        return dict(self._all("all_sessions", {"run_id": clean(run_id)}))

    def get_tmux_session(self, run_id: str) -> TmuxSession | None:
        """The terminal session in which the run was last started; None if it was not started in one."""
        row = self._one("get_tmux_session", {"run_id": clean(run_id)})
        return TmuxSession(*row) if row is not None else None

    def list_health(self) -> list[AgentHealth]:
        """The health of each agent after its last turn, in whichever run."""
        from jackline.domain.agent_health import AgentHealth

        return [AgentHealth(*row) for row in self._all("all_health", {})]

    def get_health(self) -> dict[str, AgentHealth]:
        """The same by agent."""
        return {one.agent: one for one in self.list_health()}

    def get_changes(self, run_id: str) -> Changes:
        """The known changes of the run in its repository."""
        from jackline.domain.changes import Changes

        row = self._one("changes_of_run", {"run_id": clean(run_id)})
        return rows.parse_changes(row) if row else Changes()

    def list_checkpoints(self, run_id: str) -> list[Checkpoint]:
        """The checkpoints of a run."""
        return [Checkpoint(*row) for row in self._all("all_checkpoints", {"run_id": clean(run_id)})]

    def list_notices(self, run_id: str | None = None, limit: int = 100) -> list[Notice]:
        """The outbox, newest first."""
        name = "newest_notices" if run_id is None else "newest_notices_of_run"
        return [Notice(*row) for row in self._all(name, {"run_id": clean(run_id or ""), "limit": max(0, limit)})]
