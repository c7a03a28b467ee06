"""The chains of work items, cases and the journal, computed again and compared with their rows. It only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jackline.domain import case, work
from jackline.domain.events import GENESIS, Event, broken_at
from jackline.named import NamedTuple
from jackline.store.driver import Statements

_PAGE = 1000


class _Kind(NamedTuple):
    """The query for where the chains of this kind stand, what a row is called, and its stream."""

    query: str
    what: str
    stream_of: Callable[[str], str]


_KINDS = (
    _Kind("item_chains", "work item", work.stream_of),
    _Kind("case_chains", "case", case.stream_of),
    _Kind("other_chains", "stream", str),
)


def problems(statements: Statements) -> Iterator[str]:
    """What is wrong with any of them, in words."""
    for kind in _KINDS:
        after = ""
        while page := statements.all(kind.query, {"after": after, "limit": _PAGE}):
            for name, seq, head in page:
                wrong = _wrong(statements, kind.stream_of(name), seq, head)
                if wrong:
                    yield f"{kind.what} {name}: {wrong}"
            after = page[-1][0]


def _wrong(statements: Statements, stream: str, wanted_seq: int, wanted_head: str) -> str:
    """The first thing that is wrong with one of them; empty if it holds."""
    stray = statements.one("event_before", {"stream": stream, "first": 1})
    if stray is not None:
        return f"event {stray[0]} stands before the first"
    seq, head = 0, GENESIS
    for events in _pages(statements, stream):
        broken = broken_at(events, head, seq)
        if broken is not None:
            return f"its chain is broken at event {broken}"
        seq, head = events[-1].seq, events[-1].hash
    if (seq, head) != (wanted_seq, wanted_head):
        return f"its chain ends at event {seq}, its row says {wanted_seq}"
    return ""


def _pages(statements: Statements, stream: str) -> Iterator[list[Event]]:
    values = {"stream": stream, "limit": _PAGE, "after": 0}
    while events := [Event(*row) for row in statements.all("some_events", values)]:
        yield events
        values["after"] = events[-1].seq
