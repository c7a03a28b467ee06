"""Events: append-only, numbered in their stream, each chained by hash to the one before. Pure."""

from __future__ import annotations

import json
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jackline.digests import hash_text
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping


GENESIS = ""
PERSON, ENGINE, SERVICE = "person", "engine", "service"  # the actors of most events
NOTHING: Mapping[str, Any] = MappingProxyType({})  # a read-only default
DEEPEST = 100  # levels of nesting that every recursive parser can read


class Fact(NamedTuple):
    """Something that happened, before it has a position in a stream."""

    kind: str
    data: Mapping[str, Any] = NOTHING


@stored_as("stream seq at kind actor data hash")
class Event(NamedTuple):
    """A fact with its position: stream (a run's id), sequence, time, actor, and the chain's hash up to here."""

    stream: str
    seq: int
    at: int
    kind: str
    actor: str
    data: str  # canonical JSON, redacted: exactly the bytes that the hash covers
    hash: str


# Built once: every event needs one.
_READABLE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_ESCAPED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical(value: object) -> str:
    """Encode as canonical JSON: sorted keys, no white space, only the necessary escapes."""
    text = _READABLE.encode(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates: half a character from an agent must not make the write fail
        return _ESCAPED.encode(value)
    return text


def chain(previous: str, stream: str, seq: int, at: int, kind: str, actor: str, data: str) -> str:
    """Compute the hash of an event: it covers every column and the previous hash."""
    # Each text follows its length, so that moving a character from one column to the next changes the hash.
    text = (
        f"{len(previous)}:{previous},{len(stream)}:{stream},{seq},{at},"
        f"{len(kind)}:{kind},{len(actor)}:{actor},{len(data)}:{data}"
    )
    return hash_text(text)


def place(fact: Fact, stream: str, seq: int, at: int, actor: str, previous: str) -> Event:
    """Build the event of a fact; `previous` is the hash before it."""
    data = canonical(dict(fact.data))
    digest = chain(previous, stream, seq, at, fact.kind, actor, data)
    return Event(stream=stream, seq=seq, at=at, kind=fact.kind, actor=actor, data=data, hash=digest)


def broken_at(events: list[Event], previous: str = GENESIS, after: int = 0) -> int | None:
    """The sequence number of the first event that is altered, missing or out of order; None if the chain is intact."""
    for expected, event in enumerate(events, after + 1):
        digest = chain(previous, event.stream, expected, event.at, event.kind, event.actor, event.data)
        if event.seq != expected or event.hash != digest:
            return expected
        previous = event.hash
    return None


def find_json_problem(value: object) -> str:
    """Describe why not every JSON parser could read the value, as a predicate after its name; empty if all could."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            return "has a number that is too large or not a number"
        containers = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [inner for container in containers for inner in container]
    return f"is nested more than {DEEPEST} deep" if level else ""
