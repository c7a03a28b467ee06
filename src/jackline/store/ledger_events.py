"""The events of the ledger: built from calls, each with the digests of the rows that it covers. It writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.states import CallState
from jackline.store.record_digests import RECORDS, digest_calls, digest_receipt, digest_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.records import Call, Receipt

# The kind of the event after which a call is in this state.
_KINDS = {
    CallState.PREPARED: "call.prepared",
    CallState.DONE: "call.done",
    CallState.FAILED: "call.failed",
    CallState.DENIED: "call.denied",
    CallState.IN_DOUBT: "call.in_doubt",
    CallState.VOID: "call.void",
    CallState.ABANDONED: "call.abandoned",
}


def build_intended(kind: str, call: Call) -> Fact:
    """A call before it is made."""
    data: dict[str, object] = {
        "call": call.id,
        "tool": call.tool,
        "class": call.call_class,
        "rule": call.rule,
        "input": call.input_ref or digest_text(call.input),
    }
    optional = {
        "target": call.target,
        "reason": call.reason,
        "original": call.original,
        "parent": call.parent_id,
        "external": call.external,
    }
    data |= {name: value for name, value in optional.items() if value}
    return Fact(kind, {**data, RECORDS: digest_calls((call,))})


def build_settled(call: Call, origin: str, external_id: str = "", *, receipt: Receipt | bool | None = None) -> Fact:
    """The outcome of a call. `receipt`: the one written with it; False if its key has one already; None: no effect."""
    data: dict[str, object] = {
        "call": call.id,
        "output": call.output_ref or digest_text(call.output),
        "origin": origin,
    }
    if call.exit_code is not None:
        data["exit_code"] = call.exit_code
    if call.reason:
        data["reason"] = call.reason
    if call.duration_ms is not None:
        data["duration_ms"] = call.duration_ms
    if call.external:
        data["external"] = call.external
    records = digest_calls((call,))
    if receipt is not None:
        data["receipt"] = bool(receipt)
        data["external_id"] = external_id
        if not isinstance(receipt, bool):
            records |= digest_receipt(receipt)
    return Fact(_KINDS[call.state], {**data, RECORDS: records})


def build_answered(call: Call, same_question: Iterable[Call], answer: str, by: str) -> Fact:
    """The answer to a call, and to every call that asked the same question; all as they are after the write."""
    return Fact("call.answered", {"call": call.id, "answer": answer, "by": by, RECORDS: digest_calls(same_question)})
