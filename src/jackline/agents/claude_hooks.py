"""What Claude Code's hooks say, and how the gate answers them, as the JSON of its http hooks. Pure: it decides nothing.

What stands here was seen with the real one; tests/agents/recorded/claude/hooks/ has its words.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from jackline.agents import blocks, claude_compaction, reading
from jackline.domain.adapter import Asked, Helper, Hooks, Told
from jackline.domain.states import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ASKS = "PreToolUse"
_TELLS = "PostToolUse"
_FAILS = "PostToolUseFailure"
_BEGINS = "SubagentStart"
_ENDS = "SubagentStop"
_DAY_S = 86_400
_WORDS = {Decision.ALLOW: "allow", Decision.DENY: "deny", Decision.ASK: "defer", Decision.STORED: "deny"}
# The only tool with an input that does nothing: for any other one the stored result goes into a denial's reason.
_SHELL = "Bash"
_NOTHING = {"command": "true"}
_LAUNCHERS = frozenset({"Agent", "Task"})
EXIT_CODE = re.compile(r"\AExit code (\d{1,3})(?:\n|\Z)")


class ClaudeHooks:
    """The hooks of Claude Code."""

    daring = ("--allowedTools", _SHELL)

    def read(self, fields: Mapping[str, Any]) -> Asked | Told | Helper | None:
        match fields.get("hook_event_name"):
            case "PreToolUse":
                return _asked(fields)
            case "PostToolUse":
                return _told(fields)
            case "PostToolUseFailure":
                return _failed(fields)
            case "SubagentStart":
                return Helper(_name(fields, "agent_id"))
            case "SubagentStop":
                last = reading.text(fields.get("last_assistant_message"))
                return Helper(_name(fields, "agent_id"), ended=True, output=last)
            case _:
                return None

    def answer(self, asked: Asked, decision: Decision, reason: str, output: str) -> dict[str, Any]:
        if decision is Decision.STORED and asked.tool == _SHELL:
            return _said(_ASKS, permissionDecision="allow", permissionDecisionReason=reason, updatedInput=_NOTHING)
        if decision is Decision.STORED:
            reason = f"{reason}\n{output}" if output else reason
        more: dict[str, Any] = {"permissionDecisionReason": reason} if reason else {}
        if decision is Decision.ALLOW and isinstance(asked.input, dict):
            # Said again, because another hook may have put something else in its place: ours is the last word.
            more["updatedInput"] = asked.input
        return _said(_ASKS, permissionDecision=_WORDS[decision], **more)

    def meant(self, asked: Asked, decision: Decision) -> object:
        if decision is Decision.ALLOW:
            return asked.input
        return _NOTHING if decision is Decision.STORED and asked.tool == _SHELL else None

    def stored(self, asked: Asked, output: str) -> dict[str, Any]:
        if asked.tool != _SHELL:
            return {}
        result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return _said(_TELLS, updatedToolOutput=result)


HOOKS: Hooks = ClaudeHooks()


def settings(address: str, token: str, reminder: Sequence[str] = ()) -> dict[str, Any]:
    """The settings that make every call ask at `address`; `token` is the variable that holds what the gate asks for.

    `reminder` is the command that gives the run's case back when the context was compacted.
    """
    hook = {
        "type": "http",
        "url": address,
        "timeout": _DAY_S,  # by default it is ten minutes, and then the call runs
        "headers": {"Authorization": f"Bearer ${token}"},
        "allowedEnvVars": [token],
    }
    closed = {**hook, "onFailure": "block"}
    # The last two only tell: blocked, a subagent would be sent on without end.
    each = {_ASKS: closed, _TELLS: closed, _FAILS: closed, _BEGINS: hook, _ENDS: hook}
    return {
        "hooks": {
            **{event: [{"hooks": [one]}] for event, one in each.items()},
            **(claude_compaction.hooks(reminder) if reminder else {}),
        },
        # Said although they are the defaults: these settings win over the user's and the project's, which may say true.
        "disableAllHooks": False,
        "env": {"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"},
        # Commands in a skill's text run without any hook.
        "disableSkillShellExecution": True,
    }


def _asked(fields: Mapping[str, Any]) -> Asked:
    tool = _name(fields, "tool_name")
    return Asked(
        tool=tool,
        input=fields.get("tool_input"),
        agent_call=_name(fields, "tool_use_id"),
        folder=reading.text(fields.get("cwd")),
        helper=reading.text(fields.get("agent_id")),
        launches=tool in _LAUNCHERS,
    )


def _told(fields: Mapping[str, Any]) -> Told:
    response = fields.get("tool_response")
    table = reading.table(response)
    return Told(
        agent_call=_name(fields, "tool_use_id"),
        ok=table.get("interrupted") is not True,
        output=_output(response),
        duration_ms=_duration(fields),
        is_over=not goes_on(response),
        helper=reading.text(table.get("agentId")),
        input=fields.get("tool_input"),
    )


def _failed(fields: Mapping[str, Any]) -> Told:
    words = reading.text(fields.get("error"))
    code = EXIT_CODE.match(words)
    return Told(
        agent_call=_name(fields, "tool_use_id"),
        ok=False,
        exit_code=int(code[1]) if code else None,
        output=words,
        duration_ms=_duration(fields),
        input=fields.get("tool_input"),
    )


def goes_on(response: object) -> bool:
    """Whether the call was only begun: its end is told later."""
    table = reading.table(response)
    begun = (table.get("backgroundTaskId"), table.get("taskId"), table.get("isAsync") is True)
    return any(begun) or table.get("status") == "async_launched"


def _output(response: object) -> str:
    """What the model reads, as far as it is told: a command's own words, a subagent's, or the whole as JSON."""
    table = reading.table(response)
    if "stdout" in table:
        parts = (reading.text(table.get("stdout")), reading.text(table.get("stderr")))
        return "\n".join(part for part in parts if part)
    content = table.get("content") if table.get("agentId") else response
    if isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(reading.table(part).get("type") == "text" for part in content):
        return blocks.words(content)
    return "" if response is None else json.dumps(response, ensure_ascii=False)


def _duration(fields: Mapping[str, Any]) -> int | None:
    return reading.whole(fields.get("duration_ms")) if "duration_ms" in fields else None


def _name(fields: Mapping[str, Any], field: str) -> str:
    name = reading.text(fields.get(field))
    if not name:
        raise ValueError(f"it has no {field}")
    return name


def _said(event: str, **words: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **words}}
