"""The blocks of a message, as Claude Code prints them and Qwen Code after it: words, thoughts, calls, results. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.agents import hearing, reading
from jackline.domain.outcome import Heard

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping


def said(fields: Mapping[str, Any]) -> Iterator[Heard]:
    """What an `assistant` line says; of a subagent only its calls are the turn's, and not its words."""
    is_subagent = bool(fields.get("parent_tool_use_id"))
    for block in of(fields):
        match block.get("type"):
            case "text" if not is_subagent:
                yield Heard("message", reading.text(block.get("text")))
            case "thinking" if not is_subagent:
                yield Heard("thinking", reading.text(block.get("thinking")))
            case "tool_use":
                yield hearing.started(block.get("id"), block.get("name"), block.get("input"))


def results(fields: Mapping[str, Any], exit_code: re.Pattern[str]) -> Iterator[Heard]:
    """The calls that a `user` line ends; `exit_code` finds the code of a failed command in its output."""
    for block in of(fields):
        if block.get("type") == "tool_result":
            output, is_error = words(block.get("content")), block.get("is_error") is True
            codes = exit_code.findall(output) if is_error else ()
            code = int(codes[-1]) if codes else None  # the command's own output comes first
            yield hearing.finished(block.get("tool_use_id"), output, ok=not is_error, exit_code=code)


def of(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a line's message."""
    content = reading.table(fields.get("message")).get("content")
    return [reading.table(block) for block in reading.items(content)]


def words(content: object) -> str:
    """A text, or the texts of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(reading.text(reading.table(part).get("text")) for part in reading.items(content))
