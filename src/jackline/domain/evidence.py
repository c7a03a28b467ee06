"""What a run's events say that its ledger must hold, and where the ledger says otherwise. Pure."""

from __future__ import annotations

import hashlib
import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from jackline.domain.events import canonical
from jackline.domain.records import Receipt
from jackline.domain.states import CallState, Decision, RunState
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.events import Event
    from jackline.domain.records import Call

RECORDS = "records"  # in an event's data: what was written together with it, each by its digest

# What is written with the intent and never changes; the texts have digests of their own.
_FIXED = (
    "id", "run_id", "attempt", "turn", "step", "occurrence", "tool", "call_class", "replay", "decision", "rule", "door",
    "key", "target", "prepared_at", "agent_call", "original", "parent_id",
)  # fmt: skip
_fixed = attrgetter(*_FIXED)
_ADMITTED = {
    "call.prepared": (CallState.PREPARED, Decision.ALLOW),
    "call.denied": (CallState.DENIED, Decision.DENY),
    "call.asked": (CallState.DENIED, Decision.ASK),
    "call.stored": (CallState.DONE, Decision.STORED),
}
_OPEN = frozenset({"call.prepared", "call.asked", "call.in_doubt"})  # kinds of events after which a call has not ended
_STATES = {f"run.{state}": state for state in RunState} | {
    "run.created": RunState.QUEUED,
    "run.claimed": RunState.RUNNING,
}


def digest(text: str) -> str:
    """The digest by which an event covers a text."""
    return hashlib.sha256(text.encode()).hexdigest()


_NO_TEXT = digest("")


class Told(NamedTuple):
    """What the events say of one call; what they say nothing of is None."""

    seq: int  # of the event that told of it last
    state: str
    decision: str | None = None
    row: str | None = None
    input: str | None = None
    output: str | None = None
    reason: str | None = ""
    exit_code: int | None = None
    duration_ms: int | None = None
    external: str = ""
    answer: str = ""
    finished_at: int | None = None
    receipt: tuple[str, str, int] | None = None  # external id, origin and time of the proof that was written


def other_end(what: str, found: tuple[int, str], wanted: tuple[int, str]) -> str:
    """How a chain ends elsewhere than its row says, by number and hash of its last event; empty if it does not."""
    if found == wanted:
        return ""
    if found[0] != wanted[0]:
        return f"its {what} ends at event {found[0]}, its row says {wanted[0]}"
    return f"its {what} ends at event {found[0]} with another hash than its row says"


class Unreadable(ValueError):
    """An event that jackline did not write."""


def fixed_part(call: Call) -> str:
    """The columns of a call that nothing may change, as one text."""
    return canonical(_fixed(call))


def listen(told: dict[str, Told], event: Event) -> None:
    """Remember what an event says of a call; Unreadable if it says nothing that can be understood."""
    if not event.kind.startswith("call."):
        return
    try:
        data = json.loads(event.data)
        told[data["call"]] = _after(told.get(data["call"]), event, data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"event {event.seq} cannot be read") from error


def state_told(event: Event) -> RunState | None:
    """The state that the run has after this event; None if the event is not about it."""
    return _STATES.get(event.kind)


def altered(told: Told, call: Call, answers: Mapping[str, tuple[str, int]]) -> str:
    """The first part of a call's row that is not as its events say; empty if all is.

    `answers` are by key: one word of a person answers every call that asked the same.
    """
    for name, said, found in _compared(told, call, answers):
        if said is not None and said != found:
            return name
    return ""


def answers_of(told: Mapping[str, Told], calls: Sequence[Call]) -> dict[str, tuple[str, int]]:
    """What was answered to calls that asked, by their key, and when."""
    found = {}
    for call in calls:
        said = told.get(call.id)
        if said is not None and said.decision == Decision.ASK and said.answer and said.finished_at is not None:
            found[call.key] = (said.answer, said.finished_at)
    return found


def proof_of(told: Told, call: Call) -> Receipt | None:
    """The receipt that the events say was written for a call."""
    if told.receipt is None:
        return None
    external_id, origin, at = told.receipt
    return Receipt(call.id, call.run_id, call.key, call.target, call.rule, call.output, external_id, origin, at)


def _after(before: Told | None, event: Event, data: Mapping[str, Any]) -> Told:
    if event.kind == "call.answered":
        known = before or Told(event.seq, CallState.DENIED, Decision.ASK, reason=None)
        return known._replace(seq=event.seq, answer=data["answer"], finished_at=event.at)
    ended = None if event.kind in _OPEN else event.at
    if "tool" in data:
        state, decision = _ADMITTED[event.kind]
        texts = (data["input"], _NO_TEXT, data.get("reason", ""))
        known_before = data.get("external", "")
        return Told(event.seq, state, decision, data.get("row"), *texts, external=known_before, finished_at=ended)
    known = before or Told(event.seq, "")
    return known._replace(
        seq=event.seq,
        state=event.kind.removeprefix("call."),
        output=data["output"],
        reason=data.get("reason", ""),
        exit_code=data.get("exit_code"),
        duration_ms=data.get("duration_ms"),
        external=data.get("external", ""),
        answer=data.get("answer", ""),
        finished_at=ended,
        receipt=(data["external_id"], data["origin"], event.at) if data.get("receipt") else None,
    )


def _compared(
    told: Told, call: Call, answers: Mapping[str, tuple[str, int]]
) -> Iterator[tuple[str, object | None, object]]:
    """Names, what the events say, what stands in the row. `None` said means that the events are silent."""
    yield "input", told.input, call.input_ref or digest(call.input)
    yield "output", told.output, call.output_ref or digest(call.output)
    yield "row", told.row, told.row and digest(fixed_part(call))
    yield "decision", told.decision, str(call.decision)
    yield "state", told.state, str(call.state)
    yield "reason", told.reason, call.reason
    yield "exit code", (told.exit_code,), (call.exit_code,)
    yield "duration", (told.duration_ms,), (call.duration_ms,)
    yield "external ids", told.external, call.external
    answer, at = _answer(told, call, answers)
    yield "answer", answer, call.answer
    yield "time of ending", (at,), (call.finished_at,)


def _answer(told: Told, call: Call, answers: Mapping[str, tuple[str, int]]) -> tuple[str, int | None]:
    if told.decision == Decision.ASK and call.answer:
        return answers.get(call.key, ("", None))
    return told.answer, told.finished_at
