"""Turns the neutral words of a reply (shell, write, call) into calls of the tools that an agent offers. No I/O."""

from __future__ import annotations

import os.path
import shlex
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jackline.errors import ScriptError
from jackline.fake.wire import Answer, Asked, Tool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.fake.script import Reply

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


def answer(reply: Reply, asked: Asked) -> Answer:
    """What a reply without an error says to this request."""
    say = reply.say + "." * max(0, reply.pad - len(reply.say.encode()))
    return Answer(
        id=uuid4().hex[:24],
        model=asked.model,
        say=say,
        thinking=reply.thinking,
        calls=resolve(reply, asked),
        tokens_input=reply.tokens_input,
        tokens_output=reply.tokens_output,
        tokens_cached=reply.tokens_cached,
    )


def resolve(reply: Reply, asked: Asked) -> tuple[ToolCall, ...]:
    """The calls of a reply, by the names and inputs that this agent knows; ScriptError where it offers no such tool."""
    calls = []
    if reply.shell:
        calls.append(_shell(reply.shell, asked))
    if reply.write:
        calls.append(_write(*reply.write, asked))
    named = (reply.call, *reply.calls) if reply.call else reply.calls
    return (*calls, *(_call(one["tool"], one.get("input", {})) for one in named))


def _shell(command: str, asked: Asked) -> ToolCall:
    tool = _offered(_SHELLS, asked)
    if tool is None:
        raise ScriptError(f"the script wants a shell, and the agent offers none: {_names(asked)}")
    key = _property(tool, _COMMANDS)
    is_list = "array" in _types(_properties(tool).get(key, {}))
    return _call(tool.name, {key: ["bash", "-lc", command] if is_list else command, **_required(tool, key)})


def _write(path: str, content: str, asked: Asked) -> ToolCall:
    tool = _offered(_WRITERS, asked)
    if tool is None:
        folder = shlex.quote(os.path.dirname(path) or ".")
        return _shell(f"mkdir -p {folder} && printf %s {shlex.quote(content)} > {shlex.quote(path)}", asked)
    place, words = _property(tool, _PATHS), _property(tool, _CONTENTS)
    return _call(tool.name, {place: path, words: content, **_required(tool, place, words)})


def _call(tool: str, input: Mapping[str, Any]) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex[:24]}", tool, input)


def _offered(names: Sequence[str], asked: Asked) -> Tool | None:
    offered = {tool.name: tool for tool in asked.tools}
    return next((offered[name] for name in names if name in offered), None)


def _names(asked: Asked) -> str:
    return ", ".join(tool.name for tool in asked.tools) or "no tools at all"


def _properties(tool: Tool) -> Mapping[str, Any]:
    return tool.schema.get("properties") or {}


def _property(tool: Tool, keys: Sequence[str]) -> str:
    """What the tool calls this part of its input; a tool without a schema is assumed to take the most usual word."""
    properties = _properties(tool)
    return next((key for key in keys if key in properties), keys[0])


def _required(tool: Tool, *given: str) -> Mapping[str, Any]:
    """Something valid for every other required part of the input (a description, a timeout)."""
    properties = _properties(tool)
    return {key: _filler(key, properties.get(key, {})) for key in tool.schema.get("required") or () if key not in given}


def _filler(key: str, schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of whatever type the schema wants
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    types = _types(schema)
    if types & {"integer", "number"}:
        return 120_000 if "timeout" in key.lower() else 0
    if "boolean" in types:
        return False
    if "array" in types:
        return []
    return {} if "object" in types else f"{key} of the fake model"


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema allows, in small letters: one provider writes STRING, another ["string", "null"]."""
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return {name for one in alternatives for name in _types(one)}
    types = schema.get("type", "string")
    return {name.lower() for name in ([types] if isinstance(types, str) else types)}
