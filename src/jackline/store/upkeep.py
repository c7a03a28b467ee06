"""Upkeep: status, check, backup, archive. It reports what is wrong, and repairs nothing."""

from __future__ import annotations

from collections.abc import Iterable

from jackline.domain.events import Event
from jackline.domain.states import TERMINAL
from jackline.errors import MigrationChanged, Refused
from jackline.store import schema
from jackline.store.audit import audit
from jackline.store.base import Base, no_run
from jackline.store.contract import Status, Verified
from jackline.store.driver import Driver, Statements, clean
from jackline.store.witness import Archive, Stream, Witness

_ENDS = {str(state): str(state) for state in TERMINAL}


class Upkeep(Base):
    """The part of the store that looks after itself."""

    def status(self) -> Status:
        """Schema and size."""
        return status_of(self._driver)

    def check(self, archive: Archive | None = None) -> list[str]:
        """What is wrong: damage, broken chains, rows that contradict each other. Empty is good.

        `archive` gives the archived events of a run, or None; without them only the head of those is known.
        """
        damaged = self._driver.damage()
        if damaged:
            return damaged  # what is read from a damaged file proves nothing
        return [*self._migrations(), *self._driver.snapshot(lambda one: audit(one, archive))]

    def verify(self, run_id: str, archived: Iterable[Event] | None = None, kept_head: str | None = None) -> Verified:
        """Compute the run's chain again, and compare it with all that can be compared."""
        return self._driver.snapshot(lambda one: _verified(one, clean(run_id), archived, kept_head))

    def backup(self, path: str) -> None:
        """Copy everything to a new file, which appears whole or not at all; Refused by a server."""
        self._driver.backup(path)

    def archivable(self, before: int, limit: int = 100) -> list[str]:
        """Terminal runs that ended before this time and still have their events here."""
        values = {**_ENDS, "before": before, "limit": max(0, limit)}
        return [row[0] for row in self._driver.read(lambda one: one.all("some_archivable", values))]

    def drop_archived_events(self, run_id: str, head: str, at: int) -> int:
        """Remove the events of a run whose archive is safely written; the chain's head stays."""

        def drop(statements: Statements) -> int:
            run = self._locked(statements, run_id)
            if run.life.state not in TERMINAL or run.chain_head != head:
                raise Refused(f"run {run_id} has moved on since it was archived: archive it again")
            values = {"id": run_id, "state": str(run.life.state), "head": head, "at": at}
            statements.run("mark_archived", values)
            return statements.run("drop_events", {"stream": run_id})

        return self._driver.write(drop)

    def _migrations(self) -> list[str]:
        try:
            schema.verify(self._driver)
        except MigrationChanged as error:
            return [str(error)]
        return []


def _verified(statements: Statements, run_id: str, archived: Iterable[Event] | None, kept_head: str | None) -> Verified:
    row = statements.one("chain", {"run_id": run_id})
    if row is None:
        raise no_run(run_id)
    witness = Witness(statements, Stream(*row), archived)
    lost = tuple(witness.lost())
    problems = (*lost, *witness.problems(None if lost else kept_head))
    return witness.counts._replace(problems=problems)


def status_of(driver: Driver) -> Status:
    """The state of a database, whatever its schema."""
    version = driver.version()
    counts = driver.read(lambda one: one.all("count_rows", {})) if version >= schema.latest() else []
    return Status(
        driver.backend,
        driver.place,
        version,
        schema.latest(),
        schema.pending(driver),
        dict(counts),
        driver.size() if version else None,
    )
