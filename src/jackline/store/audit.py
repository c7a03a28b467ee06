"""The audit: does what is written down agree with itself? It reads in one snapshot, and repairs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from jackline.domain.events import Event, broken_at
from jackline.domain.states import TERMINAL, CallClass, CallState, Decision
from jackline.store.base import RUNNING
from jackline.store.driver import Statements
from jackline.store.ledger import digest

_PAGE = 1000


class _Stream(NamedTuple):
    """A run's chain as its row has it."""

    id: str
    event_seq: int
    chain_head: str
    archived_seq: int
    archived_head: str


def audit(statements: Statements) -> list[str]:
    """What is wrong, in words."""
    return [*_chains(statements), *_contradictions(statements)]


def _chains(statements: Statements) -> Iterator[str]:
    after = ""
    while page := statements.all("chains", {"after": after, "limit": _PAGE}):
        for row in page:
            yield from _chain(statements, _Stream(*row))
        after = page[-1][0]
    for (stream,) in statements.all("stray_events", {}):
        yield f"there are events of a run {stream} that does not exist"


def _chain(statements: Statements, stream: _Stream) -> Iterator[str]:
    seq, head = stream.archived_seq, stream.archived_head
    told: dict[str, dict[str, str]] = {}
    while events := _page(statements, stream.id, seq):
        broken = broken_at(events, head, seq)
        if broken is not None:
            yield f"run {stream.id}: its chain is broken at event {broken}"
            return
        for event in events:
            _listen(event, told)
        seq, head = events[-1].seq, events[-1].hash
    if (seq, head) != (stream.event_seq, stream.chain_head):
        yield f"run {stream.id}: its chain ends at event {seq}, its row says {stream.event_seq}"
        return
    yield from _altered_calls(statements, stream, told)


def _page(statements: Statements, stream: str, after: int) -> list[Event]:
    values = {"stream": stream, "after": after, "limit": _PAGE}
    return [Event(*row) for row in statements.all("some_events", values)]


def _listen(event: Event, told: dict[str, dict[str, str]]) -> None:
    """Remember what the chain says of the texts that stand in the ledger."""
    if event.kind.startswith("call."):
        data = json.loads(event.data)
        known = told.setdefault(data["call"], {})
        known.update({name: data[name] for name in ("input", "output") if name in data})


def _altered_calls(statements: Statements, stream: _Stream, told: dict[str, dict[str, str]]) -> Iterator[str]:
    for call_id, input_, output in statements.all("call_texts", {"run_id": stream.id}):
        said = told.pop(call_id, None)
        if said is None and stream.archived_seq == 0:
            yield f"run {stream.id}: call {call_id} is in the ledger, and no event tells of it"
        elif said and (said.get("input", digest(input_)), said.get("output", digest(output))) != (
            digest(input_),
            digest(output),
        ):
            yield f"run {stream.id}: call {call_id} was altered after it had been written"
    for call_id in told:
        yield f"run {stream.id}: call {call_id} is missing from the ledger"


def _contradictions(statements: Statements) -> Iterator[str]:
    words = {
        "running": RUNNING,
        "effect": str(CallClass.EFFECT),
        "done": str(CallState.DONE),
        "stored": str(Decision.STORED),
        **{str(state): str(state) for state in TERMINAL},
    }
    for call_id, run_id in statements.all("proofless_effects", words):
        yield f"run {run_id}: the effect of call {call_id} is done and has no receipt"
    for run_id, state in statements.all("odd_leases", words):
        yield f"run {run_id} is {state}, and its lease says otherwise"
    for run_id, count in statements.all("odd_attempts", words):
        yield f"run {run_id}: {count} attempts have not ended, and none of them holds the lease"
    for run_id, state in statements.all("odd_ends", words):
        yield f"run {run_id} is {state}, and its time of ending says otherwise"
