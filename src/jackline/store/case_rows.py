"""How cases and their entries become rows and rows become cases: conversions only, no SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.case import COUNTERS, Case, CaseStatus, Entry, EntryKind, Problem
from jackline.domain.events import canonical
from jackline.store.driver import clean
from jackline.store.record_digests import digest_row
from jackline.store.rows import columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.store.driver import Row

CASE = "case"  # the name of the case's own row among the records; an entry's is its id
CASE_COLUMNS = (
    "id", "repository", "path", "user_name", "run_id", "status", "request", "problem", "created_at", "hypotheses",
    "evidence", "commands", "learnings", "closeout", "closed_at",
)  # fmt: skip
ENTRY_COLUMNS = ("case_id", "kind", "number", "at", "updated_at", "text", "status", "data")
_COUNTERS_AT = columns("case").index("hypotheses")
_KINDS = [str(kind) for kind in COUNTERS]


def as_json(value: object) -> str:
    """Data as both databases can store it."""
    return clean(canonical(value))


def case_values(case: Case) -> dict[str, Any]:
    """A case as parameters."""
    values = case._asdict()
    counts = values.pop("counts")
    values |= {column: counts.get(str(kind), 0) for kind, column in COUNTERS.items()}
    values |= {"problem": as_json(case.problem._asdict()), "closeout": as_json(dict(case.closeout))}
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values.items()}


def digest_case(case: Case) -> dict[str, str]:
    """The digest of a case's row as it is after the write."""
    return {CASE: digest_row(case_values(case), CASE_COLUMNS)}


def digest_entry(entry: Entry) -> dict[str, str]:
    """The digest of an entry's row."""
    return {entry.id: digest_row(entry_values(entry), ENTRY_COLUMNS)}


def to_case(row: Row) -> Case:
    """A case from the columns of `{case}`."""
    counts = dict(zip(_KINDS, row[_COUNTERS_AT:], strict=False))
    closeout, closed_at, event_seq, chain_head = row[_COUNTERS_AT + len(COUNTERS) :]
    names = [*row[:5], CaseStatus(row[5]), row[6], to_problem(row[7]), row[8], row[9]]
    values = [*names, counts, json.loads(closeout), closed_at, event_seq, chain_head]
    return Case(*values)


def to_problem(text: str) -> Problem:
    """The capsule from its JSON; what is a list there is a tuple here."""
    kept: Mapping[str, Any] = json.loads(text)
    return Problem(**{name: _plain(name, kept[name]) for name in Problem._fields if name in kept})


def _plain(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    return tuple(value) if isinstance(value, list) and name != "intake_plan" else value


def entry_values(entry: Entry) -> dict[str, Any]:
    """An entry as parameters."""
    values = entry._asdict() | {"kind": str(entry.kind), "data": as_json(dict(entry.data))}
    return values | {"text": clean(entry.text), "status": clean(str(entry.status))}


def to_entry(row: Row) -> Entry:
    """An entry from the columns of `{entry}`."""
    values = [row[0], EntryKind(row[1]), *row[2:-1], json.loads(row[-1])]
    return Entry(*values)
