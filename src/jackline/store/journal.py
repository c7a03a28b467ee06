"""Events beside those of runs: appended to a stream of their own, and the timeline over every stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Event, Fact, place
from jackline.domain.work import stream_of
from jackline.errors import NoItem
from jackline.named import NamedTuple
from jackline.store.base import Base, write_event
from jackline.store.driver import Again, Statements, clean
from jackline.store.state_contract import JOURNAL
from jackline.store.timeline import timeline

if TYPE_CHECKING:
    from jackline.store.state_contract import TimelineQuery


class _Place(NamedTuple):
    """Where an event goes: the stream, and the queries that lock and move the row where the stream's chain stands."""

    stream: str
    lock: str
    move: str
    row: str  # its key


class Journal(Base):
    """The part of the store that knows them."""

    def append(self, fact: Fact, at: int, actor: str, item_id: str | None = None) -> Event:
        """Write an event at the end of the journal, or of an item's stream."""
        told = Fact(clean(fact.kind), self.redactor.value(dict(fact.data)))
        who = self.redactor.redact(clean(actor))
        goes_to = _in_journal() if item_id is None else _in_item(clean(item_id))
        return self._driver.write(lambda statements: _append(statements, goes_to, told, at, who))

    def list_timeline(self, query: TimelineQuery) -> list[Event]:
        """Events of every stream by time; costs the same however many there are, unless it has to search."""
        sql, values = timeline(query)
        return [Event(*row) for row in self._driver.read(lambda statements: statements.listing(sql, values))]


def _in_journal() -> _Place:
    return _Place(JOURNAL, "lock_stream", "move_stream", JOURNAL)


def _in_item(item_id: str) -> _Place:
    return _Place(stream_of(item_id), "lock_item_chain", "move_item_chain", item_id)


def _append(statements: Statements, goes_to: _Place, fact: Fact, at: int, actor: str) -> Event:
    row = statements.one(goes_to.lock, {"id": goes_to.row})
    if row is None:
        if goes_to.stream != JOURNAL:
            raise NoItem(goes_to.row)
        statements.run("add_stream", {"id": JOURNAL, "at": at})
        row = statements.one(goes_to.lock, {"id": JOURNAL}) or (0, "")
    seq, head = row
    event = place(fact, goes_to.stream, seq + 1, at, actor, head)
    write_event(statements, event)
    values = {"id": goes_to.row, "after": seq, "at": at, "event_seq": event.seq, "chain_head": event.hash}
    if statements.run(goes_to.move, values) == 0:
        raise Again  # the row was changed since we looked at it
    return event
