"""Which item is next: a lease that ran out before all others, then priority, then age. It locks one row, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.store.driver import Statements, clean
from jackline.store.work_reading import WORDS, to_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.domain.work import WorkItem


class _Front(NamedTuple):
    """The first item of one part of the queue; in the order in which the parts are tried."""

    fresh: int  # 0: a lease ran out
    before: int  # the priority, turned round
    created_at: int
    id: str
    part: str
    kind: str | None


def pick_next(statements: Statements, kinds: Sequence[str]) -> WorkItem | None:
    """The next item, locked; None only if there is none, not because others hold the rows for a moment."""
    while fronts := sorted(_fronts(statements, kinds), key=lambda front: front[:4]):
        for front in fronts:
            row = statements.one(f"pick_{front.part}", _values(statements, front.kind))
            if row is not None:
                return to_item(row)
        # Others have locked all of them: when the first is free it is ours, or another claim has taken it.
        statements.one("lock_item", {"id": fronts[0].id})
    return None


def _fronts(statements: Statements, kinds: Sequence[str]) -> Iterator[_Front]:
    for kind in dict.fromkeys(kinds) or (None,):
        pending = "pending" if kind is None else "pending_of_kind"
        for fresh, part in enumerate(("expired", pending)):
            row = statements.one(f"first_{part}", _values(statements, kind))
            if row is not None:
                yield _Front(fresh, -row[2], row[3], row[0], part, kind)


def _values(statements: Statements, kind: str | None) -> dict[str, object]:
    return {**WORDS, **statements.clock(), "any": int(kind is None), "kind": clean(kind or "")}
