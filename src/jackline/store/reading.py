"""What can be read of a run besides its own row. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Event
from jackline.domain.records import Attempt, Check, Checkpoint, Notice, Turn
from jackline.store import rows
from jackline.store.base import Base
from jackline.store.driver import Row, clean

if TYPE_CHECKING:
    from jackline.domain.changes import Changes
    from jackline.domain.health import Health


class Reading(Base):
    """The part of the store that views read."""

    def events(self, stream: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events with a sequence above `after`."""
        values = {"stream": clean(stream), "after": after, "limit": max(0, limit)}
        return [Event(*row) for row in self._driver.read(lambda statements: statements.all("some_events", values))]

    def turns(self, run_id: str) -> list[Turn]:
        """The turns of a run."""
        return [rows.to_turn(row) for row in self._of_run("all_turns", run_id)]

    def attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run."""
        return [Attempt(*row) for row in self._of_run("all_attempts", run_id)]

    def checks(self, run_id: str) -> list[Check]:
        """The checks of a run."""
        return [Check(*row) for row in self._of_run("all_checks", run_id)]

    def sessions(self, run_id: str) -> dict[str, str]:
        """The provider's session of each agent of the run."""
        return dict(self._of_run("all_sessions", run_id))

    def health(self) -> list[Health]:
        """How each agent's last turn left it."""
        from jackline.domain.health import Health

        return [Health(*row) for row in self._driver.read(lambda statements: statements.all("all_health", {}))]

    def changes(self, run_id: str) -> Changes:
        """What the run changed in its repository, as far as it is known."""
        from jackline.domain.changes import Changes

        found = self._of_run("changes_of_run", run_id)
        return rows.to_changes(found[0]) if found else Changes()

    def checkpoints(self, run_id: str) -> list[Checkpoint]:
        """What a resume can start from."""
        return [Checkpoint(*row) for row in self._of_run("all_checkpoints", run_id)]

    def notices(self, run_id: str | None = None, limit: int = 100) -> list[Notice]:
        """The outbox, newest first."""
        name = "newest_notices" if run_id is None else "newest_notices_of_run"
        values = {"run_id": clean(run_id or ""), "limit": max(0, limit)}
        return [Notice(*row) for row in self._driver.read(lambda statements: statements.all(name, values))]

    def _of_run(self, name: str, run_id: str) -> list[Row]:
        values = {"run_id": clean(run_id)}
        return self._driver.read(lambda statements: statements.all(name, values))
