"""What can be read of notebooks: cases, which one is active, their entries. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.store import case_rows as rows
from jackline.store.base import Base
from jackline.store.driver import Statements, clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.case import Case, Entry, EntryKind
    from jackline.store.state_contract import CaseQuery

_LAST = "\U0010ffff"  # sorts after every other character, byte by byte
_NEVER = 2**62


class Cases(Base):
    """The part of the store that looks into them."""

    def get(self, case_id: str) -> Case | None:
        """One case by its whole id."""
        return self._one_case("get_case", {"id": clean(case_id)})

    def find_matching(self, text: str, limit: int = 10) -> list[Case]:
        """The case of this id, else those whose id begins so."""
        wanted = clean(text)
        values = {"low": wanted, "high": wanted + _LAST, "limit": max(0, limit)}

        def look(statements: Statements) -> list[Case]:
            found = statements.all("get_case", {"id": wanted}) or statements.all("find_case_prefix", values)
            return [rows.to_case(row) for row in found]

        return self._driver.read(look)

    def list_page(self, query: CaseQuery) -> list[Case]:
        """Newest first."""
        name, values = _listing(query)
        return [rows.to_case(row) for row in self._driver.read(lambda statements: statements.all(name, values))]

    def get_active(self, place: str) -> Case | None:
        """The one that is written to in this place."""
        return self._one_case("get_active_case", {"place": clean(place)})

    def _one_case(self, name: str, values: Mapping[str, object]) -> Case | None:
        row = self._driver.read(lambda statements: statements.one(name, values))
        return None if row is None else rows.to_case(row)

    def list_entries(self, case_id: str, kind: EntryKind | None = None, after: int = 0) -> list[Entry]:
        """The entries of a case by kind and number; of one kind, those with a number above `after`."""
        name = "all_entries" if kind is None else "some_entries"
        values = {"case_id": clean(case_id), "kind": str(kind), "after": after}
        return [rows.to_entry(row) for row in self._driver.read(lambda statements: statements.all(name, values))]


def _listing(query: CaseQuery) -> tuple[str, dict[str, object]]:
    before_at, before_id = query.before or (_NEVER, "")
    repository, run_id = clean(query.repository or ""), clean(query.run_id or "")
    values = {"repository": repository, "run_id": run_id, "status": str(query.status), "limit": max(0, query.limit)}
    name = "newest_cases_of_run" if run_id else "newest_cases_of_repository" if repository else "newest_cases"
    return name, {**values, "before_at": before_at, "before_id": before_id}
