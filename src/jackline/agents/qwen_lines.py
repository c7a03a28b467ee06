"""What the lines of Qwen Code say (`--output-format stream-json`): much like those of Claude Code. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents import blocks, hearing, qwen_errors, reading
from jackline.domain.outcome import Heard, Scope, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_EXIT_CODE = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)


def heard(fields: dict[str, Any]) -> Iterable[Heard]:
    """What the fields of a line mean."""
    match fields.get("type"):
        case "system":
            return _system(fields)
        case "assistant":
            return _assistant(fields)
        case "user":
            return blocks.results(fields, _EXIT_CODE)
        case "result":
            return _result(fields)
        case "stream_event":
            return ()  # the state of its goals, and pieces of what comes whole
        case _:
            return reading.RAW


def _system(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    match fields.get("subtype"):
        case "init":
            return hearing.session(fields.get("session_id"))
        case "retry":
            told = reading.table(fields.get("data"))
            return (hearing.retry(told.get("reason"), attempt=told.get("attempt"), delay_ms=told.get("delayMs")),)
        case _:
            return ()


def _assistant(fields: Mapping[str, Any]) -> Iterator[Heard]:
    yield from blocks.said(fields)
    message = reading.table(fields.get("message"))
    # The result's sum is that of the session since it began, so the messages are added up.
    yield Heard("usage", usage=_usage(message), scope=Scope.MESSAGE, of=reading.text(message.get("id")))


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    is_ok = fields.get("is_error") is False
    if not is_ok:
        words = reading.text(reading.table(fields.get("error")).get("message")) or "it failed and did not say why"
        yield qwen_errors.read(words)
    yield Heard("end", data={"ok": is_ok})


def _usage(message: Mapping[str, Any]) -> Usage:
    """What was read from a cache is contained in the input."""
    counts = reading.table(message.get("usage"))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    return Usage(*(reading.whole(counts.get(name)) for name in names))
