"""The content blocks of a message, as Claude Code and Qwen Code print them: text, thinking, calls, results. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.agents.agent_events import call_finished, call_started
from jackline.agents.json_fields import as_dict, as_list, as_str
from jackline.domain.outcome import AgentEvent

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping


def parse_message(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    """The events of an `assistant` line; a subagent's calls count for the turn, its text does not."""
    is_subagent = bool(fields.get("parent_tool_use_id"))
    for block in _list_blocks(fields):
        match block.get("type"):
            case "text" if not is_subagent:
                yield AgentEvent(kind="message", text=as_str(block.get("text")))
            case "thinking" if not is_subagent:
                yield AgentEvent(kind="thinking", text=as_str(block.get("thinking")))
            case "tool_use":
                yield call_started(block.get("id"), block.get("name"), block.get("input"))


def parse_results(fields: Mapping[str, Any], exit_code: re.Pattern[str]) -> Iterator[AgentEvent]:
    """The calls that a `user` line finishes; `exit_code` finds the code of a failed command in its output."""
    for block in _list_blocks(fields):
        if block.get("type") == "tool_result":
            output, is_error = join_text(block.get("content")), block.get("is_error") is True
            codes = exit_code.findall(output) if is_error else ()
            code = int(codes[-1]) if codes else None  # the command's own output comes first
            yield call_finished(block.get("tool_use_id"), output, ok=not is_error, exit_code=code)


def join_text(content: object) -> str:
    """The text of a message: a plain text, or the texts of its blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(as_str(as_dict(part).get("text")) for part in as_list(content))


def _list_blocks(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = as_dict(fields.get("message")).get("content")
    return [as_dict(block) for block in as_list(content)]
