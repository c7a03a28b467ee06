"""Reads of cases and their entries, their conversion from and to rows, and their verification. It changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.features.cases.case_model import (
    COUNTERS,
    LETTERS,
    Case,
    CaseEntry,
    CaseStatus,
    EntryKind,
    Problem,
    get_case_stream,
)
from jackline.named import split_stored, stored_dict
from jackline.store.driver import Row, Statements, clean
from jackline.store.parts import StorePart
from jackline.store.rows import columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.features.cases.case_model import CaseQuery
    from jackline.store.stream_check import RowDigests, StreamKind

CASE = "case"  # the name of the case's own row among the records; an entry's is its id
CASE_COLUMNS = (
    "id", "repository", "path", "user_name", "run_id", "status", "request", "problem", "created_at", "hypotheses",
    "evidence", "commands", "learnings", "closeout", "closed_at",
)  # fmt: skip
ENTRY_COLUMNS = ("case_id", "kind", "number", "at", "updated_at", "text", "status", "data")
_COUNTERS_AT = columns("case").index("hypotheses")
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
        before_at, before_id = query.before or (_NEVER, "")
        values = {
            "repository": clean(query.repository or ""),
            "run_id": clean(query.run_id or ""),
            "status": str(query.status),
            "before_at": before_at,
            "before_id": before_id,
            "limit": max(0, query.limit),
        }
        owner = "_of_run" if values["run_id"] else "_of_repository" if values["repository"] else ""
        return [build_case(row) for row in self._all(f"newest_cases{owner}", values)]

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
    counts = dict(zip(map(str, COUNTERS), row[_COUNTERS_AT:], strict=False))
    closeout, closed_at, event_seq, chain_head = row[_COUNTERS_AT + len(COUNTERS) :]
    problem, _ = split_stored(Problem, json.loads(row[7]))
    for name, value in problem.items():
        if isinstance(value, list) and name != "intake_plan":
            problem[name] = tuple(value)
    names = [*row[:5], CaseStatus(row[5]), row[6], Problem(**problem), row[8], row[9]]
    values = [*names, counts, json.loads(closeout), closed_at, event_seq, chain_head]
    return Case(*values)


def build_entry_values(entry: CaseEntry) -> dict[str, Any]:
    """An entry as parameters."""
    values = stored_dict(entry) | {"kind": str(entry.kind), "data": _encode(dict(entry.data))}
    return values | {"text": clean(entry.text), "status": clean(str(entry.status))}


def build_entry(row: Row) -> CaseEntry:
    """An entry from the columns of `{entry}`."""
    values = [row[0], EntryKind(row[1]), *row[2:-1], json.loads(row[-1])]
    return CaseEntry(*values)


# verification

# The events that write rows of a case, and the keys by which those of older versions, without digests, are known.
_EVENT_KEYS: dict[str, tuple[str, ...]] = {
    "case.started": ("request", "user", "run", "problem", "repository", "path"),
    "case.imported": ("request", "status"),
    "case.closed": (),
    "case.reopened": (),
    "case.switched": (),
    "case.moved": ("repository", "path"),
    **{
        f"case.{kind}.{done}": ("id", "text", "status")
        for kind in EntryKind
        for done in ("added", "changed", "resolved")
    },
}
_PAGE = 100  # entries: the output of a command may be large


def describe_case_streams() -> StreamKind:
    """Describe how the streams of cases are verified: the rows of a case and its entries against their digests."""
    from jackline.store.stream_check import StreamKind

    return StreamKind(
        query="case_chains",
        label="case",
        build_stream=get_case_stream,
        row=CASE,
        kinds=_EVENT_KEYS,
        find_altered=_find_altered,
    )


def _find_altered(statements: Statements, case_id: str, digests: RowDigests) -> Iterator[str]:
    row = statements.one("get_case", {"id": case_id})
    if row is not None and digests.is_altered(CASE, dict(zip(columns("case"), row, strict=True)), CASE_COLUMNS):
        yield "its row was altered after it had been written"
    missing = {name: None for name in digests.newest if name != CASE}
    for row in _read_entries(statements, case_id):
        values = dict(zip(columns("entry"), row, strict=True))
        kind, number = values["kind"], values["number"]
        name = f"{LETTERS[EntryKind(kind)]}{number:03}" if kind in set(EntryKind) else ""
        if name not in digests.newest and not (name and digests.has_unlisted_rows):
            yield f"{kind} {number} is among its entries, and no event records it"
            continue
        missing.pop(name, None)
        if digests.is_altered(name, values, ENTRY_COLUMNS):
            yield f"{name} was altered after it had been written"
    yield from (f"{name} is missing from its entries" for name in missing)


def _read_entries(statements: Statements, case_id: str) -> Iterator[Row]:
    values: dict[str, object] = {"case_id": case_id, "kind": "", "after": 0, "limit": _PAGE}
    while found := statements.all("page_of_entries", values):
        yield from found
        values["kind"], values["after"] = found[-1][1:3]
