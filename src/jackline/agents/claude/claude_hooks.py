"""Claude Code's hooks: their JSON, the gate's answers to them, and the settings that install them. Pure.

It decides nothing. Everything about the CLI was observed with the real one; see tests/agents/recorded/claude/hooks/
and tests/agents/test_claude_compaction.py.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from jackline.agents.json_fields import as_count, as_dict, as_str
from jackline.agents.message_blocks import join_text
from jackline.domain.adapter import Compaction, CompactionMoment, Hooks, SubagentEvent, ToolFinished, ToolRequested
from jackline.domain.states import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BEFORE_CALL = "PreToolUse"
_AFTER_CALL = "PostToolUse"
_CALL_FAILED = "PostToolUseFailure"
_SUBAGENT_STARTED = "SubagentStart"
_SUBAGENT_STOPPED = "SubagentStop"
_BEFORE_COMPACTION = "PreCompact"
_SESSION_STARTED = "SessionStart"
_FORGETTING_STARTS = ("compact", "resume")
_DAY_S = 86_400
_REMINDER_S = 20  # it takes a fraction of a second; the limit only prevents a hang
_REMINDER_BYTES = 8_000  # about two thousand tokens
_DECISIONS = {Decision.ALLOW: "allow", Decision.DENY: "deny", Decision.ASK: "defer", Decision.STORED: "deny"}
# The only tool with an input that does nothing. For any other tool the stored result is the reason of a denial.
_SHELL = "Bash"
_NO_OP = {"command": "true"}
_LAUNCHERS = frozenset({"Agent", "Task"})
EXIT_CODE = re.compile(r"\AExit code (\d{1,3})(?:\n|\Z)")


class ClaudeHooks:
    """The tool and subagent hooks, which ask the gate over http."""

    canary_args = ("--allowedTools", _SHELL)

    def parse(self, fields: Mapping[str, Any]) -> ToolRequested | ToolFinished | SubagentEvent | None:
        match fields.get("hook_event_name"):
            case "PreToolUse":
                tool = _require(fields, "tool_name")
                return ToolRequested(
                    tool=tool,
                    input=fields.get("tool_input"),
                    agent_call=_require(fields, "tool_use_id"),
                    folder=as_str(fields.get("cwd")),
                    subagent=as_str(fields.get("agent_id")),
                    starts_subagent=tool in _LAUNCHERS,
                )
            case "PostToolUse":
                return _parse_result(fields)
            case "PostToolUseFailure":
                error = as_str(fields.get("error"))
                code = EXIT_CODE.match(error)
                return ToolFinished(
                    agent_call=_require(fields, "tool_use_id"),
                    ok=False,
                    exit_code=int(code[1]) if code else None,
                    output=error,
                    duration_ms=_parse_duration(fields),
                    input=fields.get("tool_input"),
                )
            case "SubagentStart":
                return SubagentEvent(_require(fields, "agent_id"))
            case "SubagentStop":
                last = as_str(fields.get("last_assistant_message"))
                return SubagentEvent(_require(fields, "agent_id"), ended=True, output=last)
            case _:
                return None

    def build_answer(self, asked: ToolRequested, decision: Decision, reason: str, output: str) -> dict[str, Any]:
        if decision is Decision.STORED and asked.tool == _SHELL:
            return _hook_output(
                _BEFORE_CALL, permissionDecision="allow", permissionDecisionReason=reason, updatedInput=_NO_OP
            )
        if decision is Decision.STORED:
            reason = f"{reason}\n{output}" if output else reason
        more: dict[str, Any] = {"permissionDecisionReason": reason} if reason else {}
        if decision is Decision.ALLOW and isinstance(asked.input, dict):
            # Repeated, because another hook may have changed the input: the last answer wins, and that is ours.
            more["updatedInput"] = asked.input
        return _hook_output(_BEFORE_CALL, permissionDecision=_DECISIONS[decision], **more)

    def approved_input(self, asked: ToolRequested, decision: Decision) -> object:
        if decision is Decision.ALLOW:
            return asked.input
        return _NO_OP if decision is Decision.STORED and asked.tool == _SHELL else None

    def replay_result(self, asked: ToolRequested, output: str) -> dict[str, Any]:
        if asked.tool != _SHELL:
            return {}
        result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        return _hook_output(_AFTER_CALL, updatedToolOutput=result)


class ClaudeCompaction:
    """The hooks around a compaction, which run a command: neither works over http.

    The output of PreCompact is added to the instructions for the summary; `additionalContext` of SessionStart is part
    of the next request to the model.
    """

    most_bytes = _REMINDER_BYTES

    def parse_moment(self, fields: Mapping[str, Any]) -> CompactionMoment | None:
        match fields.get("hook_event_name"):
            case "PreCompact":
                return CompactionMoment.BEFORE
            case "SessionStart" if fields.get("source") in _FORGETTING_STARTS:
                return CompactionMoment.AFTER
            case _:
                return None

    def render_reminder(self, moment: CompactionMoment, text: str) -> str:
        if moment is CompactionMoment.BEFORE:
            return text
        return json.dumps(_hook_output(_SESSION_STARTED, additionalContext=text))


HOOKS: Hooks = ClaudeHooks()
COMPACTION: Compaction = ClaudeCompaction()


def build_settings(address: str, token: str, reminder: Sequence[str] = ()) -> dict[str, Any]:
    """Build the settings that make every call ask the gate at `address`; `token` names the variable with its token.

    `reminder` is the command that restores the run's case after a compaction.
    """
    hook = {
        "type": "http",
        "url": address,
        "timeout": _DAY_S,  # after the default of ten minutes, the call would run
        "headers": {"Authorization": f"Bearer ${token}"},
        "allowedEnvVars": [token],
    }
    blocking = {**hook, "onFailure": "block"}
    each = {
        _BEFORE_CALL: blocking,
        _AFTER_CALL: blocking,
        _CALL_FAILED: blocking,
        # These two only notify: blocked, a subagent would be sent back to work forever.
        _SUBAGENT_STARTED: hook,
        _SUBAGENT_STOPPED: hook,
    }
    compaction: dict[str, Any] = {}
    if reminder:
        # If the command fails, the session continues as if there were no hook.
        remind = {"type": "command", "command": f"{shlex.join(reminder)} || true", "timeout": _REMINDER_S}
        compaction = {
            _BEFORE_COMPACTION: [{"hooks": [remind]}],
            _SESSION_STARTED: [{"matcher": "|".join(_FORGETTING_STARTS), "hooks": [remind]}],
        }
    return {
        "hooks": {
            **{event: [{"hooks": [one]}] for event, one in each.items()},
            **compaction,
        },
        # Explicit defaults: these settings override the user's and the project's, which may set them to true.
        "disableAllHooks": False,
        "env": {"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"},
        # Commands in the text of a skill run without any hook.
        "disableSkillShellExecution": True,
    }


def is_background(response: object) -> bool:
    """Whether the call was only started, and its end is reported later."""
    table = as_dict(response)
    started = (table.get("backgroundTaskId"), table.get("taskId"), table.get("isAsync") is True)
    return any(started) or table.get("status") == "async_launched"


def has_succeeded_command(response: object) -> bool:
    """Whether this is the result of a shell command that ended with 0: any other code is reported as an error."""
    table = as_dict(response)
    return "stdout" in table and table.get("interrupted") is not True and not is_background(table)


def _parse_result(fields: Mapping[str, Any]) -> ToolFinished:
    response = fields.get("tool_response")
    table = as_dict(response)
    return ToolFinished(
        agent_call=_require(fields, "tool_use_id"),
        ok=table.get("interrupted") is not True,
        exit_code=0 if has_succeeded_command(response) else None,
        output=_extract_output(response),
        duration_ms=_parse_duration(fields),
        is_over=not is_background(response),
        subagent=as_str(table.get("agentId")),
        input=fields.get("tool_input"),
    )


def _extract_output(response: object) -> str:
    """The text that the model reads, if reported: a command's output, a subagent's text, or all as JSON."""
    table = as_dict(response)
    if "stdout" in table:
        parts = (as_str(table.get("stdout")), as_str(table.get("stderr")))
        return "\n".join(part for part in parts if part)
    content = table.get("content") if table.get("agentId") else response
    if isinstance(content, str):
        return content
    if isinstance(content, list) and content and all(as_dict(part).get("type") == "text" for part in content):
        return join_text(content)
    return "" if response is None else json.dumps(response, ensure_ascii=False)


def _parse_duration(fields: Mapping[str, Any]) -> int | None:
    return as_count(fields.get("duration_ms")) if "duration_ms" in fields else None


def _require(fields: Mapping[str, Any], field: str) -> str:
    name = as_str(fields.get(field))
    if not name:
        raise ValueError(f"it has no {field}")
    return name


def _hook_output(event: str, **fields: object) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
