"""Converts the neutral actions of a reply (shell, write, call) to calls of the tools that an agent offers. No I/O."""

from __future__ import annotations

import os.path
import shlex
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jackline.errors import ScriptError
from jackline.fake_model.wire import FakeAnswer, ModelRequest, OfferedTool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.fake_model.script import Reply

_SHELLS = (
    "Bash",
    "bash",
    "shell",
    "shell_command",
    "local_shell",
    "exec_command",
    "run_shell_command",
    "execute_command",
    "run_command",
    "run_terminal_cmd",
)
_WRITERS = ("Write", "write", "write_file", "create_file", "write_to_file")
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("file_path", "filePath", "absolute_path", "path", "target_file", "filename")
_CONTENTS = ("content", "contents", "text", "file_text")


def build_answer(reply: Reply, asked: ModelRequest) -> FakeAnswer:
    """Build the answer to a request from a reply without an error."""
    say = reply.say + "." * max(0, reply.pad - len(reply.say.encode()))
    return FakeAnswer(
        id=uuid4().hex[:24],
        model=asked.model,
        say=say,
        thinking=reply.thinking,
        calls=resolve_calls(reply, asked),
        tokens_input=reply.tokens_input,
        tokens_output=reply.tokens_output,
        tokens_cached=reply.tokens_cached,
    )


def resolve_calls(reply: Reply, asked: ModelRequest) -> tuple[ToolCall, ...]:
    """The calls of a reply, with this agent's tool names and inputs; ScriptError if it offers no such tool."""
    calls = []
    if reply.shell:
        calls.append(_build_shell_call(reply.shell, asked))
    if reply.write:
        calls.append(_build_write_call(*reply.write, asked))
    named = (reply.call, *reply.calls) if reply.call else reply.calls
    return (*calls, *(_build_call(one["tool"], one.get("input", {})) for one in named))


def _build_shell_call(command: str, asked: ModelRequest) -> ToolCall:
    tool = _find_tool(_SHELLS, asked)
    if tool is None:
        names = ", ".join(tool.name for tool in asked.tools) or "no tools at all"
        raise ScriptError(f"the script needs a shell, but the agent offers none: {names}")
    key = _find_property(tool, _COMMANDS)
    is_list = "array" in _list_types(_get_properties(tool).get(key, {}))
    return _build_call(tool.name, {key: ["bash", "-lc", command] if is_list else command, **_fill_required(tool, key)})


def _build_write_call(path: str, content: str, asked: ModelRequest) -> ToolCall:
    tool = _find_tool(_WRITERS, asked)
    if tool is None:
        folder = shlex.quote(os.path.dirname(path) or ".")
        return _build_shell_call(f"mkdir -p {folder} && printf %s {shlex.quote(content)} > {shlex.quote(path)}", asked)
    path_key, content_key = _find_property(tool, _PATHS), _find_property(tool, _CONTENTS)
    return _build_call(tool.name, {path_key: path, content_key: content, **_fill_required(tool, path_key, content_key)})


def _build_call(tool: str, input: Mapping[str, Any]) -> ToolCall:
    return ToolCall(id=f"call_{uuid4().hex[:24]}", tool=tool, input=input)


def _find_tool(names: Sequence[str], asked: ModelRequest) -> OfferedTool | None:
    offered = {tool.name: tool for tool in asked.tools}
    return next((offered[name] for name in names if name in offered), None)


def _get_properties(tool: OfferedTool) -> Mapping[str, Any]:
    return tool.schema.get("properties") or {}


def _find_property(tool: OfferedTool, keys: Sequence[str]) -> str:
    """The tool's name for this part of its input; without a schema, the most common name."""
    properties = _get_properties(tool)
    return next((key for key in keys if key in properties), keys[0])


def _fill_required(tool: OfferedTool, *given: str) -> Mapping[str, Any]:
    """Valid values for every other required part of the input (a description, a timeout)."""
    properties = _get_properties(tool)
    return {
        key: _build_filler(key, properties.get(key, {}))
        for key in tool.schema.get("required") or ()
        if key not in given
    }


def _build_filler(key: str, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of whatever type the schema wants
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    types = _list_types(schema)
    if types & {"integer", "number"}:
        return 120_000 if "timeout" in key.lower() else 0
    if "boolean" in types:
        return False
    if "array" in types:
        return []
    return {} if "object" in types else f"{key} of the fake model"


def _list_types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types of a schema, in lower case: one provider writes STRING, another ["string", "null"]."""
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return {name for one in alternatives for name in _list_types(one)}
    types = schema.get("type", "string")
    return {name.lower() for name in ([types] if isinstance(types, str) else types)}
