"""Builds agent events: from jackline's own event lines, and from untrusted fields of a CLI's output. Pure.

An event line is one JSON object, as jackline's helper programs print it: {"type":"message","text":"…"},
{"type":"call.started","call":"…","tool":"…","input":{…}}, {"type":"call.finished","call":"…","ok":true,"exit_code":0,
"output":"…"}, {"type":"usage","input":1,"output":2,"cached":0,"usd":0.1}, {"type":"session","id":"…"},
{"type":"limit","detail":"…","resets_at":SECONDS}, {"type":"error","class":"…","detail":"…"},
{"type":"end","reason":"…"}.
"""

from __future__ import annotations

from typing import Any

from jackline.agents.json_fields import RAW, as_count, as_str, parse_line, seconds_to_ms, usd_to_micros
from jackline.agents.outcomes import last_event, outcome_of_complaints, outcome_of_exit
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure, WaitReason

_KINDS = (
    "message", "thinking", "call.started", "call.finished", "usage", "session", "limit", "retry", "error", "end",
)  # fmt: skip
_TEXT_NAMES = ("text", "detail", "reason", "id")  # the first of these fields becomes the event's text
_SCOPES = {str(one): one for one in Scope}


def parse_event_line(line: bytes) -> tuple[AgentEvent, ...]:
    """Parse an event line; any other line is `raw`."""
    return parse_line(line, _to_events)


def classify_by_events(exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
    """A reported limit or error comes before the exit of the process."""
    complaint = outcome_of_complaints(events)
    if complaint is not None:
        return complaint
    end = last_event(events, "end")
    if end is not None and end.text == "deferred":
        return Outcome(waits=WaitReason.APPROVAL)
    return outcome_of_exit(exit_, ended=end is not None, tail=tail)


def _to_events(fields: dict[str, Any]) -> tuple[AgentEvent, ...]:
    kind = fields.pop("type", None)
    if kind not in _KINDS:
        return RAW
    text = next((fields[name] for name in _TEXT_NAMES if isinstance(fields.get(name), str)), "")
    if "resets_at" in fields or kind == "limit":
        fields["resets_at"] = seconds_to_ms(fields.get("resets_at"))
    if kind != "usage":
        return (AgentEvent(kind=kind, text=text, data=fields),)
    usage = Usage(
        tokens_input=as_count(fields.get("input")),
        tokens_output=as_count(fields.get("output")),
        tokens_cached=as_count(fields.get("cached")),
        usd_micros=usd_to_micros(fields.get("usd")),
    )
    scope = _SCOPES.get(as_str(fields.get("scope")), Scope.STEP)
    of, priced = as_str(fields.get("of")), fields.get("usd") is not None
    return (AgentEvent(kind=kind, text=text, data=fields, usage=usage, scope=scope, message_id=of, priced=priced),)


def session_events(value: object) -> tuple[AgentEvent, ...]:
    """The session id; nothing if there is none."""
    session = as_str(value)
    return (AgentEvent(kind="session", text=session),) if session else ()


def call_started(call: object, tool: object, given: object) -> AgentEvent:
    """A call has started, by the CLI's own id for it; `given` is any JSON."""
    return AgentEvent("call.started", data={"call": as_str(call), "tool": as_str(tool), "input": given})


def call_finished(call: object, output: str, *, ok: bool, exit_code: object = None) -> AgentEvent:
    """A call has finished; the exit code is omitted if there is none."""
    data: dict[str, Any] = {"call": as_str(call), "ok": ok, "output": output}
    is_code = isinstance(exit_code, int) and not isinstance(exit_code, bool)
    return AgentEvent("call.finished", data={**data, "exit_code": exit_code} if is_code else data)


def retry_event(text: object, *, attempt: object, delay_ms: object = None, status: object = None) -> AgentEvent:
    """The CLI retries a request by itself; None means that it did not report the figure."""
    data = {"attempt": attempt, "delay_ms": delay_ms, "status": status}
    counts = {name: None if value is None else as_count(value) for name, value in data.items()}
    return AgentEvent(kind="retry", text=as_str(text), data=counts)


def compacted_event(trigger: object, *, before: int, after: int) -> AgentEvent:
    """The CLI replaced its conversation with a summary; with the token counts that it reported."""
    return AgentEvent("compacted", data={"trigger": as_str(trigger), "tokens_before": before, "tokens_after": after})


def error_event(text: str, failure: Failure, **more: object) -> AgentEvent:
    """The CLI's own error line, with its failure class."""
    return AgentEvent(kind="error", text=text, data={"class": str(failure), **more})
