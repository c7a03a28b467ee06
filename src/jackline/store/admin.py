"""Administration of the database: status, backup, archive, the name of the instance. It repairs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import TERMINAL
from jackline.errors import Refused
from jackline.store import schema
from jackline.store.driver import Statements, clean
from jackline.store.models import DatabaseStatus
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from jackline.store.driver import Driver

_TERMINAL_WORDS = {str(state): str(state) for state in TERMINAL}


class Admin(StorePart):
    """The part of the store for administration."""

    def get_status(self) -> DatabaseStatus:
        """Schema and size."""
        return read_status(self._driver)

    def name_instance(self, host: str, agent: str) -> tuple[str, str]:
        """Name the instance's host and agent, unless they have names; returns the names that they have now."""
        return self._driver.write(
            lambda one: (_set_first_value(one, "host", host), _set_first_value(one, "agent", agent))
        )

    def backup(self, path: str) -> None:
        """Copy everything to a new file, which appears whole or not at all; a server refuses and names its own tool."""
        self._driver.backup(path)

    def list_archivable(self, before: int, limit: int = 100) -> list[str]:
        """Terminal runs that ended before this time and still have their events here."""
        values = {**_TERMINAL_WORDS, "before": before, "limit": max(0, limit)}
        return [row[0] for row in self._all("archivable_runs", values)]

    def drop_archived_events(self, run_id: str, head: str, at: int) -> int:
        """Remove the events of a run whose archive is safely written; Refused if the run has changed since."""

        def drop(statements: Statements) -> int:
            run = self._lock_run(statements, run_id)
            if run.status.state not in TERMINAL or run.chain_head != head:
                raise Refused(f"run {run_id} has changed since it was archived: archive it again")
            statements.run("mark_archived", {"id": run_id, "state": str(run.status.state), "head": head, "at": at})
            return statements.run("drop_events", {"stream": run_id})

        return self._driver.write(drop)


def read_status(driver: Driver) -> DatabaseStatus:
    """The status of a database, whatever its schema."""
    version = driver.version()
    counts = driver.read(lambda one: one.all("count_rows", {})) if version >= schema.get_latest_version() else []
    return DatabaseStatus(
        backend=driver.backend,
        place=driver.place,
        schema=version,
        known_schema=schema.get_latest_version(),
        pending=schema.list_pending(driver),
        counts=dict(counts),
        size=driver.size() if version else None,
    )


def _set_first_value(statements: Statements, name: str, value: str) -> str:
    """The value that was set first, which may be this one."""
    statements.run("add_instance_value", {"name": name, "value": clean(value)})
    row = statements.one("instance_value", {"name": name})
    return str(row[0]) if row else value
