"""What the lines of opencode and its forks say (`run --format json`), one JSON object each. Pure; never raises."""

from __future__ import annotations

from typing import Any

from jackline.agents import hearing, opencode_errors, reading
from jackline.domain.outcome import Heard, Usage


def heard(fields: dict[str, Any]) -> tuple[Heard, ...]:
    """What the fields of a line mean."""
    part = reading.table(fields.get("part"))
    match fields.get("type"):
        case "step_start":
            return hearing.session(fields.get("sessionID"))
        case "text":
            return (Heard("message", reading.text(part.get("text"))),)
        case "reasoning":
            return (Heard("thinking", reading.text(part.get("text"))),)
        case "tool_use":
            return _call(part)
        case "step_finish":
            return _step(part)
        case "error":
            error, now = reading.table(fields.get("error")), reading.whole(fields.get("timestamp"))
            return (*hearing.session(fields.get("sessionID")), opencode_errors.read(error, now))
    return reading.RAW


def _call(part: dict[str, Any]) -> tuple[Heard, ...]:
    """Told only when it is over."""
    call, state = part.get("callID"), reading.table(part.get("state"))
    code = reading.table(state.get("metadata")).get("exit")
    output = reading.text(state.get("output")) or reading.text(state.get("error"))
    ok = state.get("status") == "completed" and not code
    started = hearing.started(call, part.get("tool"), state.get("input"))
    return started, hearing.finished(call, output, ok=ok, exit_code=code)


def _step(part: dict[str, Any]) -> tuple[Heard, ...]:
    tokens = reading.table(part.get("tokens"))
    cache = reading.table(tokens.get("cache"))
    cached = reading.whole(cache.get("read"))
    usage = Usage(
        tokens_input=reading.whole(tokens.get("input")) + cached + reading.whole(cache.get("write")),
        tokens_output=reading.whole(tokens.get("output")) + reading.whole(tokens.get("reasoning")),
        tokens_cached=cached,
        usd_micros=reading.micros(part.get("cost")),
    )
    reason = reading.text(part.get("reason"))
    used = Heard("usage", usage=usage)
    if reason == "tool-calls":
        return (used,)  # another step follows
    return used, Heard("end", reason, {"ok": reason == "stop"})
