"""Reads of work items, their conversion from and to rows, and their verification. It changes nothing."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from jackline.domain.states import WORK_ENDED, WorkStatus
from jackline.errors import UsageError
from jackline.features.work.work_item import ItemQuery, WorkItem, get_item_stream
from jackline.store.driver import Row, clean
from jackline.store.parts import StorePart
from jackline.store.rows import build_parameters, columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.store.driver import Statements
    from jackline.store.stream_check import RowDigests, StreamKind

ITEM = "item"  # the name of the item's row among the records
# Covered by its digest; not the lease and the time of the last change, which a renewal changes without an event.
ITEM_COLUMNS = (
    "id", "kind", "payload", "status", "owner_agent", "created_at", "notes", "priority", "attempts", "max_attempts",
    "token", "question", "answer", "dead", "finished_at",
)  # fmt: skip

_UNFINISHED = tuple(one for one in WorkStatus if one not in WORK_ENDED)
WORDS = {str(one): str(one) for one in _UNFINISHED}
_MOST_PARTS = 300  # of a query: SQLite merges no more than 500
_NEWEST = "ORDER BY created_at DESC, id DESC LIMIT :limit"


class WorkItems(StorePart):
    """Reads of work items."""

    def get(self, item_id: str) -> WorkItem | None:
        """One item by its whole id."""
        row = self._driver.read(lambda statements: statements.one("get_item", {"id": clean(item_id)}))
        return None if row is None else build_item(row)

    def list_page(self, query: ItemQuery) -> list[WorkItem]:
        """Newest first; the cost does not grow with the number of items."""
        sql, values = build_listing(query)
        return [build_item(row) for row in self._driver.read(lambda statements: statements.listing(sql, values))]

    def list_unfinished(self, older_than: int, limit: int = 1000, *, given_up_only: bool = False) -> list[WorkItem]:
        """The items that a host replays at its start, oldest first: the pending, and the abandoned ones in flight.

        An item is abandoned if its lease ran out or it was not touched since `older_than`.
        """
        values = {**WORDS, "older_than": older_than, "limit": max(0, limit)}
        if given_up_only:
            values["pending"] = ""  # a status that no item has
        found = self._driver.read(lambda one: one.all("unfinished_items", {**values, **one.clock()}))
        return [build_item(row) for row in found]

    def count_open(self) -> list[tuple[str, str, int]]:
        """(kind, status, count) of the items that are pending, in flight or waiting for a person."""
        counts = self._driver.snapshot(lambda one: [(word, one.all("count_items", {"status": word})) for word in WORDS])
        return [(kind, status, count) for status, found in counts for kind, count in found]


def build_item(row: Row) -> WorkItem:
    """An item from the columns of `{item}`."""
    item = WorkItem(*row)
    return item._replace(status=WorkStatus(item.status), dead=bool(item.dead))


def build_item_values(item: WorkItem) -> dict[str, Any]:
    """An item as parameters."""
    return {**build_parameters(item), "dead": int(item.dead)}


def build_listing(query: ItemQuery) -> tuple[str, dict[str, object]]:
    """The query of a page and its parameters: parts that each read one index from its newest end, merged."""
    values: dict[str, object] = {"limit": max(0, query.limit)}
    shared = []
    if query.owner is not None:
        values["owner"] = clean(query.owner)
        shared.append("owner_agent = :owner")
    if query.before is not None:
        values["before_at"], values["before_id"] = query.before[0], clean(query.before[1])
        shared.append("(created_at, id) < (:before_at, :before_id)")
    statuses = _add_words("status", query.statuses, values) or [None]
    kinds = _add_words("kind", query.kinds, values) or [None]
    if len(statuses) * len(kinds) > _MOST_PARTS:
        raise UsageError(f"too many kinds: name at most {_MOST_PARTS // len(statuses)}")
    led = query.owner is not None
    names = ", ".join(columns("item"))
    parts = []
    for status, kind in product(statuses, kinds):
        filters = [*shared, *_build_filters(status, kind, str(values.get(status or "")), led=led)]
        where = f" WHERE {' AND '.join(filters)}" if filters else ""
        parts.append(f"SELECT * FROM (SELECT {names} FROM work_items{where} {_NEWEST}) AS part")  # noqa: S608
    return f"SELECT {names} FROM ({' UNION ALL '.join(parts)}) AS merged {_NEWEST}", values  # noqa: S608


def _add_words(column: str, wanted: tuple[str, ...], values: dict[str, object]) -> list[str | None]:
    named = {f"{column}_{place}": clean(str(one)) for place, one in enumerate(dict.fromkeys(wanted))}
    values |= named
    return list(named)


def _build_filters(status: str | None, kind: str | None, wanted: str, *, led: bool) -> list[str]:
    """The conditions on status and kind; only one column leads, so that its index gives the order.

    `|| ''` keeps the other column's index out. Of what is unfinished there is little, so its status leads.
    """
    by_status = not led and status is not None and (kind is None or wanted in WORDS)
    by_kind = not led and not by_status
    found = []
    if status is not None:
        found.append(f"status = :{status}" if by_status else f"status || '' = :{status}")
    if kind is not None:
        found.append(f"kind = :{kind}" if by_kind else f"kind || '' = :{kind}")
    return found


# verification

# The events that write an item's row, and the keys by which those of older versions, without digests, are known.
_EVENT_KEYS = {
    "work.created": ("kind", "payload", "status", "priority", "max_attempts"),
    "work.imported": ("kind", "payload", "status"),
    "work.claimed": ("owner", "token", "attempt"),
    "work.resolved": ("status",),
    "work.released": ("owner",),
    "work.buried": ("attempts",),
    "work.waiting": ("question",),
    "work.answered": ("answer",),
    "work.annotated": ("notes",),
}


def describe_item_streams() -> StreamKind:
    """Describe how the streams of items are verified: each row against its newest digest."""
    from jackline.store.stream_check import StreamKind

    return StreamKind(
        query="item_chains",
        label="work item",
        build_stream=get_item_stream,
        row=ITEM,
        kinds=_EVENT_KEYS,
        find_altered=_find_altered,
    )


def _find_altered(statements: Statements, item_id: str, digests: RowDigests) -> Iterator[str]:
    row = statements.one("get_item", {"id": item_id})
    if row is not None and digests.is_altered(ITEM, dict(zip(columns("item"), row, strict=True)), ITEM_COLUMNS):
        yield "its row was altered after it had been written"
