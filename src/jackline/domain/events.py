"""The event: append-only, numbered in its stream, chained by hash to the one before. Pure."""

from __future__ import annotations

import hashlib
import json
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping


GENESIS = ""
NOTHING: Mapping[str, Any] = MappingProxyType({})  # a default that nobody can fill by mistake


class Fact(NamedTuple):
    """Something that happened, before it has a place in a stream."""

    kind: str
    data: Mapping[str, Any] = NOTHING


@stored_as("stream seq at kind actor data hash")
class Event(NamedTuple):
    """A fact with its place: stream (a run's id), sequence, time, actor, and the chain's hash up to here."""

    stream: str
    seq: int
    at: int
    kind: str
    actor: str
    data: str  # canonical JSON, redacted: exactly the bytes that the hash covers
    hash: str


# Made once: every event needs one.
_READABLE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_ESCAPED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """JSON with one spelling: sorted keys, no white space, no escapes but the necessary ones."""
    text = _READABLE.encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates: half a character from an agent must not make the write fail
        return _ESCAPED.encode(value)
    return text


def chain(previous: str, stream: str, seq: int, at: int, kind: str, actor: str, data: str) -> str:
    """The hash of an event: it covers every column and the hash before it."""
    # Each text after its length, so that no character can be moved from one column into its neighbour unseen.
    text = (
        f"{len(previous)}:{previous},{len(stream)}:{stream},{seq},{at},"
        f"{len(kind)}:{kind},{len(actor)}:{actor},{len(data)}:{data}"
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def place(fact: Fact, stream: str, seq: int, at: int, actor: str, previous: str) -> Event:
    """Give a fact its place after `previous`."""
    data = canonical(dict(fact.data))
    digest = chain(previous, stream, seq, at, fact.kind, actor, data)
    return Event(stream=stream, seq=seq, at=at, kind=fact.kind, actor=actor, data=data, hash=digest)


def broken_at(events: list[Event], previous: str = GENESIS, after: int = 0) -> int | None:
    """The sequence number of the first event that is altered, missing or out of order; None if the chain holds."""
    for expected, event in enumerate(events, after + 1):
        digest = chain(previous, event.stream, expected, event.at, event.kind, event.actor, event.data)
        if event.seq != expected or event.hash != digest:
            return expected
        previous = event.hash
    return None


DEEPEST = 100  # values in values: whoever reads it with a recursive parser must get to its end


def find_json_problem(value: object) -> str:
    """What is wrong with it, to be read after its name; empty if nothing is."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            return "has a number that is too large, or none"
        level = [inner for one in level for inner in _inside(one)]
    return f"is nested more than {DEEPEST} deep" if level else ""


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
