"""What the ledger's events say of a call: enough that any later change of its row is seen. It writes nothing."""

from __future__ import annotations

from jackline.domain.events import Fact
from jackline.domain.evidence import digest, fixed_part
from jackline.domain.records import Call


def intended(kind: str, call: Call) -> Fact:
    """A call before it is made."""
    data: dict[str, object] = {
        "call": call.id,
        "tool": call.tool,
        "class": call.call_class,
        "rule": call.rule,
        "input": call.input_ref or digest(call.input),
        "row": digest(fixed_part(call)),
    }
    optional = {
        "target": call.target,
        "reason": call.reason,
        "original": call.original,
        "parent": call.parent_id,
        "external": call.external,
    }
    return Fact(kind, data | {name: value for name, value in optional.items() if value})


def settled(call: Call, external_id: str, origin: str, *, receipt: bool | None) -> Fact:
    """How a call came out."""
    data: dict[str, object] = {
        "call": call.id,
        "output": call.output_ref or digest(call.output),
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
    if receipt is not None:
        data["receipt"] = receipt
        data["external_id"] = external_id
    return Fact(f"call.{call.state}", data)
