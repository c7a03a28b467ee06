"""The tools that jackline offers to a model: a shell and workspace files. Every call goes through the gate."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..scripted.playback.agent_io import SHOWN_CHARACTERS, GateClient, Stop, emit
from . import workspace_io
from .helper_turn import REPORTED_CHARACTERS, Heartbeat, HelperContext, child_env


@dataclass(frozen=True, slots=True)
class ModelToolResult:
    """The result of a tool."""

    ok: bool
    output: str
    exit_code: int | None = None

    def format(self) -> str:
        """The text that the model reads."""
        if self.exit_code is None:
            return self.output if self.ok else f"error: {self.output}"
        return f"exit code {self.exit_code}\n{self.output}"


Work = Callable[[HelperContext, Heartbeat, Mapping[str, Any]], ModelToolResult]


@dataclass(frozen=True, slots=True)
class ToolField:
    """One argument of a tool."""

    kind: str
    description: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool: its name for the model, and its name in policy rules (`word`)."""

    name: str
    word: str
    description: str
    fields: Mapping[str, ToolField]
    work: Work


class InvalidCall(ValueError):
    """The model called an unknown tool, or passed invalid arguments."""


def _run_shell(context: HelperContext, heartbeat: Heartbeat, given: Mapping[str, Any]) -> ModelToolResult:
    seconds = float(given.get("timeout") or workspace_io.COMMAND_SECONDS)
    seconds = min(max(seconds, 1.0), workspace_io.LONGEST_COMMAND_SECONDS)
    env = child_env(context.environ)
    result = workspace_io.run_shell(given["command"], context.workspace, env, seconds, heartbeat.beat)
    return ModelToolResult(result.exit_code == 0, result.output, result.exit_code)


def _read_file(context: HelperContext, _heartbeat: Heartbeat, given: Mapping[str, Any]) -> ModelToolResult:
    first, count = int(given.get("first") or 1), given.get("count")
    text = workspace_io.read_lines(context.workspace, given["path"], first, None if count is None else int(count))
    if len(text) <= workspace_io.READ_CHARACTERS:
        return ModelToolResult(ok=True, output=text)
    note = f"\n[cut after {workspace_io.READ_CHARACTERS} characters: ask for the rest with first and count]"
    return ModelToolResult(ok=True, output=text[: workspace_io.READ_CHARACTERS] + note)


def _write_file(context: HelperContext, _heartbeat: Heartbeat, given: Mapping[str, Any]) -> ModelToolResult:
    workspace_io.write_text(context.workspace, given["path"], given["content"])
    return ModelToolResult(ok=True, output=f"wrote {len(given['content'])} characters to {given['path']}")


def _list_files(context: HelperContext, _heartbeat: Heartbeat, given: Mapping[str, Any]) -> ModelToolResult:
    return ModelToolResult(ok=True, output=workspace_io.list_folder(context.workspace, given.get("path") or "."))


_PATH = ToolField("string", "path below the working folder")
TOOLS = {
    tool.name: tool
    for tool in (
        ModelTool(
            "shell",
            "shell",
            "Run a command with /bin/sh in the working folder. You get its exit code and output.",
            {
                "command": ToolField("string", "the command"),
                "timeout": ToolField(
                    "number", f"seconds before it is killed (default {workspace_io.COMMAND_SECONDS:g})", required=False
                ),
            },
            _run_shell,
        ),
        ModelTool(
            "read_file",
            "read",
            "Read a text file.",
            {
                "path": _PATH,
                "first": ToolField("integer", "the first line (default 1)", required=False),
                "count": ToolField("integer", "the number of lines (default: all)", required=False),
            },
            _read_file,
        ),
        ModelTool(
            "write_file",
            "write",
            "Write a whole text file; its old content is replaced. Missing folders are created.",
            {"path": _PATH, "content": ToolField("string", "the new content")},
            _write_file,
        ),
        ModelTool(
            "list_files",
            "list",
            "List a folder.",
            {"path": ToolField("string", "the folder (default: the working folder)", required=False)},
            _list_files,
        ),
    )
}
_KINDS: Mapping[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float)}


def list_schemas() -> list[dict[str, Any]]:
    """The tools in the form of a request to the model."""
    schemas = []
    for tool in TOOLS.values():
        fields = {name: {"type": field.kind, "description": field.description} for name, field in tool.fields.items()}
        required = [name for name, field in tool.fields.items() if field.required]
        parameters = {"type": "object", "properties": fields, "required": required}
        function = {"name": tool.name, "description": tool.description, "parameters": parameters}
        schemas.append({"type": "function", "function": function})
    return schemas


def run_tool(context: HelperContext, heartbeat: Heartbeat, agent_call: str, call: Mapping[str, Any]) -> str:
    """Run a call of the model through the gate; returns the text that the model reads."""
    try:
        tool, given = parse_call(call)
    except InvalidCall as error:
        return f"error: {error}"

    def work() -> ModelToolResult:
        try:
            return tool.work(context, heartbeat, given)
        except (OSError, ValueError) as error:  # for the model to read
            return ModelToolResult(ok=False, output=str(error))

    return _ask_and_run(context.gate, tool.word, given, agent_call, work).format()


def parse_call(call: Mapping[str, Any]) -> tuple[ModelTool, dict[str, Any]]:
    """Find the tool that a call of the model names, and check its arguments; InvalidCall if they do not fit."""
    value = call.get("function")
    function = value if isinstance(value, dict) else {}
    tool = TOOLS.get(str(function.get("name")))
    if tool is None:
        raise InvalidCall(f"there is no tool '{function.get('name')}'; the tools are {', '.join(TOOLS)}")
    arguments = _parse_arguments(function.get("arguments"))
    given = {}  # only the tool's own fields: others that a model invents must not make two calls differ in the ledger
    for name, field in tool.fields.items():
        value = arguments.get(name)
        if value is None and field.required:
            raise InvalidCall(f"{tool.name} needs '{name}': {field.description}")
        if value is not None:
            given[name] = _convert_argument(tool, name, field, value)
    return tool, given


def _parse_arguments(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):  # some models send text
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise InvalidCall(f"the arguments are not JSON: {error}") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise InvalidCall("the arguments are not an object")
    return arguments


def _convert_argument(tool: ModelTool, name: str, field: ToolField, value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str) and field.kind != "string":
        try:
            value = float(value)  # small models put numbers in quotes
        except ValueError:
            value = None
    if isinstance(value, float) and field.kind == "integer" and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, _KINDS[field.kind]):
        raise InvalidCall(f"'{name}' of {tool.name} must be a {field.kind}")
    return value


def _ask_and_run(
    gate: GateClient, word: str, given: Mapping[str, Any], agent_call: str, work: Callable[[], ModelToolResult]
) -> ModelToolResult:
    """Ask the gate, run the work, report the result. A call that needs approval ends the turn."""
    answer = gate.prepare(word, given, agent_call)
    match answer["decision"]:
        case "allow":
            call = str(answer["call"])
            emit("call.started", call=call, tool=word, input=given)
            result = work()
            output = result.output[-REPORTED_CHARACTERS:]
            gate.finish(call=call, ok=result.ok, output=output, external_id="", **_exit_code_field(result))
            _emit_finished(call, word, result, stored=False)
            return result
        case "stored":
            stored = ModelToolResult(ok=True, output=str(answer.get("output") or ""))
            _emit_finished(str(answer.get("call") or ""), word, stored, stored=True)
            return stored
        case "ask":
            raise Stop(0, "end", reason="deferred")
        case _:
            reason = str(answer.get("reason") or "no reason was given")
            emit("message", text=f"{word} was denied: {reason}", call=answer.get("call"))
            return ModelToolResult(ok=False, output=f"denied: {reason}")


def _emit_finished(call: str, word: str, result: ModelToolResult, *, stored: bool) -> None:
    output = result.output[-SHOWN_CHARACTERS:]
    code = _exit_code_field(result)
    emit("call.finished", call=call, tool=word, ok=result.ok, output=output, stored=stored, **code)


def _exit_code_field(result: ModelToolResult) -> dict[str, int]:
    return {} if result.exit_code is None else {"exit_code": result.exit_code}
