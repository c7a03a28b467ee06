"""The query of the timeline, put together from what it is narrowed by. Text only: it runs nothing.

It reads the index of the timeline from one end, or from a place in it, and stops after a page, so that it costs the
same however many events there are. What no index knows (a kind, an actor, a text) is looked for on the way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import canonical
from jackline.store.driver import clean
from jackline.store.rows import columns

if TYPE_CHECKING:
    from jackline.store.state_contract import TimelineQuery

# Word for word as in the index `events_timeline`: SQLite takes a partial index only for its own conditions.
TIMELINE = (
    "NOT (kind >= 'agent.' AND kind < 'agent/')",
    "NOT (kind >= 'call.' AND kind < 'call/')",
)
_LAST = "\U0010ffff"  # sorts after every other character, byte by byte
_CAPITALS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_ESCAPED = str.maketrans({"!": "!!", "%": "!%", "_": "!_"})


def timeline(query: TimelineQuery) -> tuple[str, dict[str, object]]:
    """The query and its parameters."""
    values: dict[str, object] = {"limit": max(0, query.limit)}
    shared = () if query.whole and query.stream else TIMELINE
    conditions = [*shared, *_places(query, values), *_filters(query, values)]
    # Within one stream the sequence is the order: the clocks of several hosts may disagree.
    names = ("seq",) if query.stream else ("at", "stream", "seq")
    newest_first = query.newest_first and query.after is None
    order = ", ".join(f"{name} DESC" if newest_first else name for name in names)
    where = " AND ".join(conditions)
    return f"SELECT {', '.join(columns('event'))} FROM events WHERE {where} ORDER BY {order} LIMIT :limit", values  # noqa: S608


def _places(query: TimelineQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name, sign, place in (("after", ">", query.after), ("before", "<", query.before)):
        if place is not None:
            at, stream, seq = place
            values |= {f"{name}_at": at, f"{name}_stream": clean(stream), f"{name}_seq": seq}
            whole = f"(at, stream, seq) {sign} (:{name}_at, :{name}_stream, :{name}_seq)"
            conditions.append(f"seq {sign} :{name}_seq" if query.stream else whole)
    if query.since is not None:
        values["since"] = query.since
        conditions.append("at >= :since")
    return conditions


def _filters(query: TimelineQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name in ("stream", "actor"):
        if wanted := getattr(query, name):
            values[name] = clean(wanted)
            conditions.append(f"{name} = :{name}")
    if query.kind:
        values |= {"kind_low": clean(query.kind), "kind_high": clean(query.kind) + _LAST}
        conditions.append("kind >= :kind_low AND kind < :kind_high")
    if query.text:
        values |= {"text": _pattern(clean(query.text)), "json": _pattern(canonical(clean(query.text))[1:-1])}
        found = " OR ".join(f"lower({name}) LIKE :{text} ESCAPE '!'" for name, text in _SEARCHED)
        conditions.append(f"({found})")
    return conditions


# The data is JSON: a quotation mark in a text stands there as \", and somebody may look for a piece of the JSON too.
_SEARCHED = (("kind", "text"), ("actor", "text"), ("data", "text"), ("data", "json"))


def _pattern(text: str) -> str:
    return f"%{text.translate(_CAPITALS).translate(_ESCAPED)}%"
