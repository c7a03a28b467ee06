"""How cases and their entries become rows and rows become cases: conversions only, no SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.domain.case import COUNTERS, Case, CaseStatus, Entry, EntryKind, Problem
from jackline.domain.events import canonical
from jackline.named import split_stored, stored_dict
from jackline.store.driver import clean
from jackline.store.rows import columns

if TYPE_CHECKING:
    from jackline.store.driver import Row

_COUNTERS_AT = columns("case").index("hypotheses")
_KINDS = [str(kind) for kind in COUNTERS]


def as_json(value: object) -> str:
    """Data as both databases can store it."""
    return clean(canonical(value))


def case_values(case: Case) -> dict[str, Any]:
    """A case as parameters."""
    values = stored_dict(case)
    counts = values.pop("counts")
    values |= {column: counts.get(str(kind), 0) for kind, column in COUNTERS.items()}
    values |= {"problem": as_json(stored_dict(case.problem)), "closeout": as_json(dict(case.closeout))}
    return {name: clean(str(value)) if isinstance(value, str) else value for name, value in values.items()}


def to_case(row: Row) -> Case:
    """A case from the columns of `{case}`."""
    counts = dict(zip(_KINDS, row[_COUNTERS_AT:], strict=False))
    closeout, closed_at, event_seq, chain_head = row[_COUNTERS_AT + len(COUNTERS) :]
    names = [*row[:5], CaseStatus(row[5]), row[6], to_problem(row[7]), row[8], row[9]]
    values = [*names, counts, json.loads(closeout), closed_at, event_seq, chain_head]
    return Case(*values)


def to_problem(text: str) -> Problem:
    """The capsule from its JSON; what is a list there is a tuple here."""
    known, _ = split_stored(Problem, json.loads(text))
    lists = {name: tuple(value) for name, value in known.items() if isinstance(value, list) and name != "intake_plan"}
    return Problem(**{**known, **lists})


def entry_values(entry: Entry) -> dict[str, Any]:
    """An entry as parameters."""
    values = stored_dict(entry) | {"kind": str(entry.kind), "data": as_json(dict(entry.data))}
    return values | {"text": clean(entry.text), "status": clean(str(entry.status))}


def to_entry(row: Row) -> Entry:
    """An entry from the columns of `{entry}`."""
    values = [row[0], EntryKind(row[1]), *row[2:-1], json.loads(row[-1])]
    return Entry(*values)
