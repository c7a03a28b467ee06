"""Builds the events that all adapters share, from untrusted fields: one vocabulary, spelled in one place. Pure."""

from __future__ import annotations

from typing import Any

from jackline.agents.json_fields import as_count, as_str
from jackline.domain.outcome import Heard
from jackline.domain.states import Failure


def session_events(value: object) -> tuple[Heard, ...]:
    """The session id; nothing if there is none."""
    session = as_str(value)
    return (Heard("session", session),) if session else ()


def call_started(call: object, tool: object, given: object) -> Heard:
    """A call has started, by the CLI's own id for it; `given` is any JSON."""
    return Heard("call.started", data={"call": as_str(call), "tool": as_str(tool), "input": given})


def call_finished(call: object, output: str, *, ok: bool, exit_code: object = None) -> Heard:
    """A call has finished; the exit code is omitted if there is none."""
    data: dict[str, Any] = {"call": as_str(call), "ok": ok, "output": output}
    is_code = isinstance(exit_code, int) and not isinstance(exit_code, bool)
    return Heard("call.finished", data={**data, "exit_code": exit_code} if is_code else data)


def retry_event(text: object, *, attempt: object, delay_ms: object = None, status: object = None) -> Heard:
    """The CLI retries a request by itself; None means that it did not report the figure."""
    data = {"attempt": attempt, "delay_ms": delay_ms, "status": status}
    counts = {name: None if value is None else as_count(value) for name, value in data.items()}
    return Heard("retry", as_str(text), counts)


def compacted_event(trigger: object, *, before: int, after: int) -> Heard:
    """The CLI replaced its conversation with a summary; with the token counts that it reported."""
    return Heard("compacted", data={"trigger": as_str(trigger), "tokens_before": before, "tokens_after": after})


def error_event(text: str, failure: Failure, **more: object) -> Heard:
    """The CLI's own error line, with its failure class."""
    return Heard("error", text, {"class": str(failure), **more})
