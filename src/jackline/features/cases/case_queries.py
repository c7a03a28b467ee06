"""Reads of cases and their entries, and their conversion from and to rows. It changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.features.cases.case_model import COUNTERS, Case, CaseEntry, CaseStatus, EntryKind, Problem
from jackline.named import split_stored, stored_dict
from jackline.store.driver import Row, Statements, clean
from jackline.store.parts import StorePart
from jackline.store.rows import columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.features.cases.case_model import CaseQuery

CASE = "case"  # the name of the case's own row among the records; an entry's is its id
CASE_COLUMNS = (
    "id", "repository", "path", "user_name", "run_id", "status", "request", "problem", "created_at", "hypotheses",
    "evidence", "commands", "learnings", "closeout", "closed_at",
)  # fmt: skip
ENTRY_COLUMNS = ("case_id", "kind", "number", "at", "updated_at", "text", "status", "data")
_COUNTERS_AT = columns("case").index("hypotheses")
_KINDS = [str(kind) for kind in COUNTERS]

_LAST = "\U0010ffff"  # sorts after every other character, byte by byte
_NEVER = 2**62


class Cases(StorePart):
    """Reads of cases."""

    def get(self, case_id: str) -> Case | None:
        """One case by its whole id."""
        return self._get_one("get_case", {"id": clean(case_id)})

    def find_matching(self, text: str, limit: int = 10) -> list[Case]:
        """The case with this id, else those whose id begins with the text."""
        wanted = clean(text)
        values = {"low": wanted, "high": wanted + _LAST, "limit": max(0, limit)}

        def read(statements: Statements) -> list[Case]:
            found = statements.all("get_case", {"id": wanted}) or statements.all("find_case_prefix", values)
            return [build_case(row) for row in found]

        return self._driver.read(read)

    def list_page(self, query: CaseQuery) -> list[Case]:
        """Newest first."""
        name, values = _build_listing(query)
        return [build_case(row) for row in self._all(name, values)]

    def get_active(self, place: str) -> Case | None:
        """The active case of a place."""
        return self._get_one("get_active_case", {"place": clean(place)})

    def _get_one(self, name: str, values: Mapping[str, object]) -> Case | None:
        row = self._one(name, values)
        return None if row is None else build_case(row)

    def list_entries(self, case_id: str, kind: EntryKind | None = None, after: int = 0) -> list[CaseEntry]:
        """The entries of a case by kind and number; of one kind, those with a number above `after`."""
        name = "all_entries" if kind is None else "some_entries"
        values = {"case_id": clean(case_id), "kind": str(kind), "after": after}
        return [build_entry(row) for row in self._all(name, values)]


def _build_listing(query: CaseQuery) -> tuple[str, dict[str, object]]:
    before_at, before_id = query.before or (_NEVER, "")
    repository, run_id = clean(query.repository or ""), clean(query.run_id or "")
    values = {"repository": repository, "run_id": run_id, "status": str(query.status), "limit": max(0, query.limit)}
    name = "newest_cases_of_run" if run_id else "newest_cases_of_repository" if repository else "newest_cases"
    return name, {**values, "before_at": before_at, "before_id": before_id}


# rows


def _encode(value: object) -> str:
    """JSON that both databases can store."""
    return clean(canonical(value))


def build_case_values(case: Case) -> dict[str, Any]:
    """A case as parameters."""
    values = stored_dict(case)
    counts = values.pop("counts")
    values |= {column: counts.get(str(kind), 0) for kind, column in COUNTERS.items()}
    values |= {"problem": _encode(stored_dict(case.problem)), "closeout": _encode(dict(case.closeout))}
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values.items()}


def build_case(row: Row) -> Case:
    """A case from the columns of `{case}`."""
    counts = dict(zip(_KINDS, row[_COUNTERS_AT:], strict=False))
    closeout, closed_at, event_seq, chain_head = row[_COUNTERS_AT + len(COUNTERS) :]
    names = [*row[:5], CaseStatus(row[5]), row[6], _to_problem(row[7]), row[8], row[9]]
    values = [*names, counts, json.loads(closeout), closed_at, event_seq, chain_head]
    return Case(*values)


def _to_problem(text: str) -> Problem:
    """The capsule from its JSON; what is a list there is a tuple here."""
    known, _ = split_stored(Problem, json.loads(text))
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list) and name != "intake_plan"}
    return Problem(**{**known, **lists})


def build_entry_values(entry: CaseEntry) -> dict[str, Any]:
    """An entry as parameters."""
    values = stored_dict(entry) | {"kind": str(entry.kind), "data": _encode(dict(entry.data))}
    return values | {"text": clean(entry.text), "status": clean(str(entry.status))}


def build_entry(row: Row) -> CaseEntry:
    """An entry from the columns of `{entry}`."""
    values = [row[0], EntryKind(row[1]), *row[2:-1], json.loads(row[-1])]
    return CaseEntry(*values)
