"""Events that belong to no run, and the timeline of the events of every stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Event, Fact, canonical, place
from jackline.errors import NoItem
from jackline.store.driver import RetryTransaction, Statements, clean
from jackline.store.models import JOURNAL
from jackline.store.parts import StorePart, write_event
from jackline.store.rows import columns

if TYPE_CHECKING:
    from jackline.store.models import TimelineQuery

_ITEM_STREAM = "work:"  # and the item's id

# Word for word as in the index `events_timeline`: SQLite takes a partial index only for its own conditions.
TIMELINE = (
    "NOT (kind >= 'agent.' AND kind < 'agent/')",
    "NOT (kind >= 'call.' AND kind < 'call/')",
)
# The data is JSON, in which a quotation mark is \"; a search may also be for a piece of the JSON.
_SEARCHED = (("kind", "text"), ("actor", "text"), ("data", "text"), ("data", "json"))
_LAST = "\U0010ffff"  # sorts after every other character, byte by byte
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_ESCAPED = str.maketrans({"!": "!!", "%": "!%", "_": "!_"})


class Journal(StorePart):
    """The part of the store that appends events and reads the timeline."""

    def append(self, fact: Fact, at: int, actor: str, item_id: str | None = None) -> Event:
        """Write an event at the end of the journal, or of a work item's stream."""
        redacted = Fact(clean(fact.kind), self.redactor.redact_value(dict(fact.data)))
        actor = self.redactor.redact(clean(actor))
        if item_id is None:
            return self._driver.write(lambda one: append_to_journal(one, redacted, at, actor))
        return self._driver.write(lambda one: _append_to_item(one, clean(item_id), redacted, at, actor))

    def list_timeline(self, query: TimelineQuery) -> list[Event]:
        """Events of every stream by time; the cost does not grow with their number, unless it has to search."""
        sql, values = build_timeline(query)
        return [Event(*row) for row in self._driver.read(lambda statements: statements.listing(sql, values))]


def append_to_journal(statements: Statements, fact: Fact, at: int, actor: str) -> Event:
    """Append an event to the journal, in the transaction of another part."""
    row = statements.one("lock_stream", {"id": JOURNAL})
    if row is None:
        statements.run("add_stream", {"id": JOURNAL, "at": at})
        row = statements.one("lock_stream", {"id": JOURNAL}) or (0, "")
    seq, head = row
    event = place(fact, JOURNAL, seq + 1, at, actor, head)
    return _write_at_end(statements, "move_stream", JOURNAL, event)


def _append_to_item(statements: Statements, item_id: str, fact: Fact, at: int, actor: str) -> Event:
    row = statements.one("lock_item_chain", {"id": item_id})
    if row is None:
        raise NoItem(item_id)
    seq, head = row
    event = place(fact, f"{_ITEM_STREAM}{item_id}", seq + 1, at, actor, head)
    return _write_at_end(statements, "move_item_chain", item_id, event)


def _write_at_end(statements: Statements, query: str, row_id: str, event: Event) -> Event:
    write_event(statements, event)
    end = {"event_seq": event.seq, "chain_head": event.hash}
    if statements.run(query, {"id": row_id, "after": event.seq - 1, "at": event.at, **end}) == 0:
        raise RetryTransaction  # the row was changed since we read it
    return event


def build_timeline(query: TimelineQuery) -> tuple[str, dict[str, object]]:
    """The SQL of a page of the timeline, and its parameters.

    It reads the index of the timeline from one end, or from a given event, and stops after a page, so that the cost
    does not grow with the number of events. Only a kind, an actor or a text needs a search, because no index has it.
    """
    values: dict[str, object] = {"limit": max(0, query.limit)}
    shared = () if query.whole and query.stream else TIMELINE
    conditions = [*shared, *_build_bounds(query, values), *_build_filters(query, values)]
    # Within one stream the sequence is the order: the clocks of several hosts may disagree.
    names = ("seq",) if query.stream else ("at", "stream", "seq")
    newest_first = query.newest_first and query.after is None
    order = ", ".join(f"{name} DESC" if newest_first else name for name in names)
    where = " AND ".join(conditions)
    return f"SELECT {', '.join(columns('event'))} FROM events WHERE {where} ORDER BY {order} LIMIT :limit", values  # noqa: S608


def _build_bounds(query: TimelineQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name, sign, cursor in (("after", ">", query.after), ("before", "<", query.before)):
        if cursor is not None:
            at, stream, seq = cursor
            values |= {f"{name}_at": at, f"{name}_stream": clean(stream), f"{name}_seq": seq}
            whole = f"(at, stream, seq) {sign} (:{name}_at, :{name}_stream, :{name}_seq)"
            conditions.append(f"seq {sign} :{name}_seq" if query.stream else whole)
    if query.since is not None:
        values["since"] = query.since
        conditions.append("at >= :since")
    return conditions


def _build_filters(query: TimelineQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name in ("stream", "actor"):
        if wanted := getattr(query, name):
            values[name] = clean(wanted)
            conditions.append(f"{name} = :{name}")
    if query.kind:
        values |= {"kind_low": clean(query.kind), "kind_high": clean(query.kind) + _LAST}
        conditions.append("kind >= :kind_low AND kind < :kind_high")
    if query.text:
        values |= {
            "text": _build_pattern(clean(query.text)),
            "json": _build_pattern(canonical(clean(query.text))[1:-1]),
        }
        found = " OR ".join(f"lower({column}) LIKE :{value} ESCAPE '!'" for column, value in _SEARCHED)
        conditions.append(f"({found})")
    return conditions


def _build_pattern(text: str) -> str:
    return f"%{text.translate(_LOWER).translate(_ESCAPED)}%"
