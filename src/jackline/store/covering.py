"""The records beside a run's events: covered by digests when they are written, compared later. It repairs nothing.

Covered is what stays as it is: a turn and a check that have ended, and a checkpoint. Each stands in the event that was
written together with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.events import Fact, canonical
from jackline.domain.evidence import RECORDS, digest
from jackline.store import rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.run_evidence import Told
    from jackline.store.contract import Change
    from jackline.store.driver import Statements

_NAMES = {"turn": ("number",), "check": ("step",), "checkpoint": ("step", "kind")}  # what a record is called by
_OF_AGENT = ("agent.", "call.")
_KEPT = Fact("step.recorded")


def covered(change: Change) -> tuple[Fact, ...]:
    """The change's facts, with the digests of its records in the last; an agent's own words are left as they are."""
    records = dict(_written(change))
    if not records:
        return change.facts
    *before, last = change.facts or (_KEPT,)
    if last.kind.startswith(_OF_AGENT):
        before, last = [*before, last], _KEPT
    return (*before, Fact(last.kind, {**last.data, RECORDS: records}))


def odd_records(statements: Statements, run_id: str, told: Told, *, hears_all: bool) -> Iterator[str]:
    """Where records say something else than the events."""
    missing = dict(told.records)
    for record in _NAMES:
        for row in statements.all(f"all_{record}s", {"run_id": run_id}):
            values = dict(zip(rows.columns(record), row, strict=True))
            name = _name(record, values)
            said = missing.pop(name, None)
            if said is not None and said != _digest(row):
                yield f"{name} was altered after it had been written"
            elif said is None and hears_all and told.covers and _stays(values):
                yield f"{name} stands there, and no event tells of it"
    yield from (f"{name} is missing" for name in missing)


def _written(change: Change) -> Iterator[tuple[str, str]]:
    if change.turn is not None:
        yield from _digested("turn", rows.turn_values(change.turn))
    if change.check is not None:
        yield from _digested("check", rows.plain(change.check))
    if change.checkpoint is not None:
        yield from _digested("checkpoint", rows.plain(change.checkpoint))


def _digested(record: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if _stays(values):
        yield _name(record, values), _digest([values[name] for name in rows.columns(record)])


def _stays(values: Mapping[str, Any]) -> bool:
    """Whether nobody will write it again; only a checkpoint has no end, and is whole from the beginning."""
    return values.get("ended_at", 0) is not None


def _name(record: str, values: Mapping[str, Any]) -> str:
    return " ".join([record, *(str(values[name]) for name in _NAMES[record])])


def _digest(row: Sequence[object]) -> str:
    return digest(canonical(list(row)))
