"""jackline's own event lines, which its helper programs print: one JSON object a line, in the words of `Heard`. Pure.

{"type":"message","text":"…"}, {"type":"call.started","call":"…","tool":"…","input":{…}}, {"type":"call.finished",
"call":"…","ok":true,"exit_code":0,"output":"…"}, {"type":"usage","input":1,"output":2,"cached":0,"usd":0.1},
{"type":"session","id":"…"}, {"type":"limit","detail":"…","resets_at":SECONDS}, {"type":"error","class":"…",
"detail":"…"}, {"type":"end","reason":"…"}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.agents import reading, verdict
from jackline.domain.outcome import Heard, Outcome, Scope, Usage
from jackline.domain.states import WaitReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.outcome import Exit

_KINDS = frozenset(
    {"message", "thinking", "call.started", "call.finished", "usage", "session", "limit", "retry", "error",
     "end"}
)  # fmt: skip
_TEXT_NAMES = ("text", "detail", "reason", "id")  # what a person reads first of a line, in this order
_SCOPES = {str(one): one for one in Scope}


def parse(line: bytes) -> tuple[Heard, ...]:
    """What a line says; `raw` if it is none of ours."""
    return reading.parsed(line, _heard)


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """What the agent said in so many words counts before how its process ended."""
    complaint = verdict.said(heard)
    if complaint is not None:
        return complaint
    end = verdict.last(heard, "end")
    if end is not None and end.text == "deferred":
        return Outcome(waits=WaitReason.APPROVAL)
    return verdict.of_exit(exit_, ended=end is not None, tail=tail)


def _heard(fields: dict[str, Any]) -> tuple[Heard, ...]:
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        return reading.RAW
    text = next((fields[name] for name in _TEXT_NAMES if isinstance(fields.get(name), str)), "")
    if "resets_at" in fields or kind == "limit":
        fields["resets_at"] = reading.milliseconds(fields.get("resets_at"))
    if kind != "usage":
        return (Heard(kind, text, fields),)
    scope = _SCOPES.get(reading.text(fields.get("scope")), Scope.STEP)
    return (Heard(kind, text, fields, _usage(fields), scope, reading.text(fields.get("of"))),)


def _usage(fields: Mapping[str, Any]) -> Usage:
    return Usage(
        tokens_input=reading.whole(fields.get("input")),
        tokens_output=reading.whole(fields.get("output")),
        tokens_cached=reading.whole(fields.get("cached")),
        usd_micros=reading.micros(fields.get("usd")),
    )
