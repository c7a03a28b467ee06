"""Runs found: by a few characters, by what they have in common. A part of its own, because who looks writes nothing."""

from __future__ import annotations

from jackline.domain.ids import as_number
from jackline.domain.records import Repository, Run
from jackline.store import rows
from jackline.store.base import Base
from jackline.store.contract import RunQuery, RunRow
from jackline.store.driver import Statements, clean
from jackline.store.listing import listing

_LAST = "\U0010ffff"  # sorts after every other character, byte by byte


class Finding(Base):
    """The part of the store that knows runs by name."""

    def run(self, run_id: str) -> Run | None:
        """One run by its whole id."""
        return self._driver.read(lambda statements: self._maybe(statements, clean(run_id)))

    def _maybe(self, statements: Statements, run_id: str) -> Run | None:
        row = statements.one("get_run", {"id": run_id})
        return None if row is None else rows.to_run(row, self._spec(statements, run_id))

    def matching_runs(self, text: str, repository: str | None, limit: int = 10) -> list[RunRow]:
        """Runs whose id is `text`; else whose number it is in the repository; else whose id begins so."""
        return self._driver.read(lambda statements: _matching(statements, clean(text), repository, limit))

    def list_runs(self, query: RunQuery) -> list[RunRow]:
        """Newest first; costs the same however many runs there are."""
        sql, values = listing(query)
        return [RunRow(*row) for row in self._driver.read(lambda statements: statements.listing(sql, values))]

    def repositories(self) -> list[Repository]:
        """Every place where a run was made."""
        found = self._driver.read(lambda statements: statements.all("all_repositories", {}))
        return [Repository(*row) for row in found]


def _matching(statements: Statements, text: str, repository: str | None, limit: int) -> list[RunRow]:
    found = statements.all("find_run", {"id": text})
    number = as_number(text)
    if not found and number is not None and repository is not None:
        found = statements.all("find_number", {"repository": repository, "number": number})
    if not found and text:
        found = statements.all("find_prefix", {"low": text, "high": text + _LAST, "limit": limit})
    return [RunRow(*row) for row in found]
