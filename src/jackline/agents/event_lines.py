"""jackline's own event lines, which its helper programs print: one JSON object a line, in the words of `Heard`. Pure.

{"type":"message","text":"…"}, {"type":"call.started","call":"…","tool":"…","input":{…}}, {"type":"call.finished",
"call":"…","ok":true,"exit_code":0,"output":"…"}, {"type":"usage","input":1,"output":2,"cached":0,"usd":0.1},
{"type":"session","id":"…"}, {"type":"limit","detail":"…","resets_at":SECONDS}, {"type":"error","class":"…",
"detail":"…"}, {"type":"end","reason":"…"}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.agents.json_fields import RAW, as_count, as_str, parse_line, seconds_to_ms, usd_to_micros
from jackline.agents.outcomes import last_event, outcome_of_complaints, outcome_of_exit
from jackline.domain.outcome import Heard, Outcome, Scope, Usage
from jackline.domain.states import WaitReason

if TYPE_CHECKING:
    from jackline.domain.outcome import Exit

_KINDS = frozenset(
    {"message", "thinking", "call.started", "call.finished", "usage", "session", "limit", "retry", "error",
     "end"}
)  # fmt: skip
_TEXT_NAMES = ("text", "detail", "reason", "id")  # the first of these fields becomes the event's text
_SCOPES = {str(one): one for one in Scope}


def parse(line: bytes) -> tuple[Heard, ...]:
    """Parse an event line; any other line is `raw`."""
    return parse_line(line, _to_events)


def classify(exit_: Exit, events: tuple[Heard, ...], tail: str) -> Outcome:
    """A reported limit or error comes before the exit of the process."""
    complaint = outcome_of_complaints(events)
    if complaint is not None:
        return complaint
    end = last_event(events, "end")
    if end is not None and end.text == "deferred":
        return Outcome(waits=WaitReason.APPROVAL)
    return outcome_of_exit(exit_, ended=end is not None, tail=tail)


def _to_events(fields: dict[str, Any]) -> tuple[Heard, ...]:
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        return RAW
    text = next((fields[name] for name in _TEXT_NAMES if isinstance(fields.get(name), str)), "")
    if "resets_at" in fields or kind == "limit":
        fields["resets_at"] = seconds_to_ms(fields.get("resets_at"))
    if kind != "usage":
        return (Heard(kind, text, fields),)
    usage = Usage(
        tokens_input=as_count(fields.get("input")),
        tokens_output=as_count(fields.get("output")),
        tokens_cached=as_count(fields.get("cached")),
        usd_micros=usd_to_micros(fields.get("usd")),
    )
    scope = _SCOPES.get(as_str(fields.get("scope")), Scope.STEP)
    return (Heard(kind, text, fields, usage, scope, as_str(fields.get("of"))),)
