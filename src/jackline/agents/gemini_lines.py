"""What the lines of Gemini CLI say (`--output-format stream-json`), one JSON object each. Pure; never raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.agents import gemini_errors, hearing, reading
from jackline.domain.outcome import Heard, Scope, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def heard(fields: dict[str, Any]) -> Iterable[Heard]:
    """What the fields of a line mean."""
    match fields.get("type"):
        case "init":
            return hearing.session(fields.get("session_id"))
        case "message":
            return _message(fields)
        case "tool_use":
            return (hearing.started(fields.get("tool_id"), fields.get("tool_name"), fields.get("parameters")),)
        case "tool_result":
            return (_finished(fields),)
        case "error":
            return (gemini_errors.notice(reading.text(fields.get("message"))),)
        case "result":
            return _result(fields)
        case _:
            return reading.RAW


def _message(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    """A piece of what the model says: `delta` tells that the next one goes on with it."""
    if fields.get("role") != "assistant":
        return ()  # our own prompt
    data = {"delta": True} if fields.get("delta") is True else {}
    return (Heard("message", reading.text(fields.get("content")), data),)


def _finished(fields: Mapping[str, Any]) -> Heard:
    """It says success of a command that failed, too: its exit code is not told."""
    output = reading.text(fields.get("output")) or reading.text(reading.table(fields.get("error")).get("message"))
    return hearing.finished(fields.get("tool_id"), output, ok=fields.get("status") == "success")


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    stats = reading.table(fields.get("stats"))
    yield Heard("usage", usage=_usage(stats), scope=Scope.TURN)
    is_ok = fields.get("status") == "success"
    message = reading.text(reading.table(fields.get("error")).get("message"))
    if message and not is_ok:
        yield gemini_errors.read(message, reading.text(fields.get("timestamp")))
    yield Heard("end", data={"ok": is_ok, "asked": bool(reading.table(stats.get("models")))})


def _usage(stats: Mapping[str, Any]) -> Usage:
    """Of this process alone, resumed or not. Thoughts are in the total, and in none of its parts."""
    total, told = reading.whole(stats.get("total_tokens")), reading.whole(stats.get("output_tokens"))
    tokens_input = reading.whole(stats.get("input_tokens"))
    return Usage(tokens_input, max(told, total - tokens_input), reading.whole(stats.get("cached")))
