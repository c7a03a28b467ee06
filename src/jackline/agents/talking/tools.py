"""The tools that jackline offers to a model: a shell and the files of the workspace. The gate is asked in calls.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import files, shell
from .turn import Place, Pulse, surroundings


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool came to."""

    ok: bool
    output: str
    exit_code: int | None = None

    def for_model(self) -> str:
        """What the model reads of it."""
        if self.exit_code is None:
            return self.output if self.ok else f"error: {self.output}"
        return f"exit code {self.exit_code}\n{self.output}"


Work = Callable[[Place, Pulse, Mapping[str, Any]], Result]


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a tool."""

    kind: str
    meaning: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool by the name that the model knows, and by the word that rules know it by."""

    name: str
    word: str
    meaning: str
    fields: Mapping[str, Field]
    work: Work


class Unfit(ValueError):
    """The model called no tool of ours, or not as it must be called."""


def _shell(place: Place, pulse: Pulse, given: Mapping[str, Any]) -> Result:
    seconds = min(max(float(given.get("timeout") or shell.SECONDS), 1.0), shell.MOST_SECONDS)
    ended = shell.run(given["command"], place.workspace, surroundings(place.environ), seconds, pulse.beat)
    return Result(ended.exit_code == 0, ended.output, ended.exit_code)


def _read(place: Place, _pulse: Pulse, given: Mapping[str, Any]) -> Result:
    count = given.get("count")
    text = files.read(
        place.workspace, given["path"], int(given.get("first") or 1), None if count is None else int(count)
    )
    if len(text) <= files.MOST_CHARACTERS:
        return Result(ok=True, output=text)
    note = f"\n[cut after {files.MOST_CHARACTERS} characters: ask for the rest by first and count]"
    return Result(ok=True, output=text[: files.MOST_CHARACTERS] + note)


def _write(place: Place, _pulse: Pulse, given: Mapping[str, Any]) -> Result:
    files.write(place.workspace, given["path"], given["content"])
    return Result(ok=True, output=f"wrote {len(given['content'])} characters to {given['path']}")


def _list(place: Place, _pulse: Pulse, given: Mapping[str, Any]) -> Result:
    return Result(ok=True, output=files.names(place.workspace, given.get("path") or "."))


_PATH = Field("string", "path below the working folder")
TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "shell",
            "shell",
            "Run a command with /bin/sh in the working folder. You get its exit code and output.",
            {
                "command": Field("string", "the command"),
                "timeout": Field("number", f"seconds until it is killed (default {shell.SECONDS:g})", required=False),
            },
            _shell,
        ),
        Tool(
            "read_file",
            "read",
            "Read a text file.",
            {
                "path": _PATH,
                "first": Field("integer", "the line to begin with (default 1)", required=False),
                "count": Field("integer", "how many lines (default: all)", required=False),
            },
            _read,
        ),
        Tool(
            "write_file",
            "write",
            "Write a text file, whole: what it held before is replaced. Folders are made.",
            {"path": _PATH, "content": Field("string", "the new content")},
            _write,
        ),
        Tool(
            "list_files",
            "list",
            "List a folder.",
            {"path": Field("string", "the folder (default: the working folder)", required=False)},
            _list,
        ),
    )
}
_KINDS: Mapping[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float)}


def offered() -> list[dict[str, Any]]:
    """The tools as a request to the model tells them."""
    return [{"type": "function", "function": _function(tool)} for tool in TOOLS.values()]


def _function(tool: Tool) -> dict[str, Any]:
    fields = {name: {"type": field.kind, "description": field.meaning} for name, field in tool.fields.items()}
    required = [name for name, field in tool.fields.items() if field.required]
    schema = {"type": "object", "properties": fields, "required": required}
    return {"name": tool.name, "description": tool.meaning, "parameters": schema}


def wanted(call: Mapping[str, Any]) -> tuple[Tool, dict[str, Any]]:
    """The tool that a call of the model names, and what it is to get."""
    function = call.get("function")
    named = function if isinstance(function, dict) else {}
    tool = TOOLS.get(str(named.get("name")))
    if tool is None:
        raise Unfit(f"there is no tool '{named.get('name')}'; there are {', '.join(TOOLS)}")
    return tool, _fitting(tool, _object(named.get("arguments")))


def work_of(tool: Tool, place: Place, pulse: Pulse, given: Mapping[str, Any]) -> Callable[[], Result]:
    """The work itself, not begun; what goes wrong in it is for the model to read."""
    return partial(_tried, tool, place, pulse, given)


def _tried(tool: Tool, place: Place, pulse: Pulse, given: Mapping[str, Any]) -> Result:
    try:
        return tool.work(place, pulse, given)
    except (OSError, ValueError) as error:
        return Result(ok=False, output=str(error))


def _object(arguments: object) -> dict[str, Any]:
    """Some models send their arguments as text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise Unfit(f"the arguments are not JSON: {error}") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise Unfit("the arguments are not an object")
    return arguments


def _fitting(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Only the fields that the tool knows: what else a model invents must not make two calls differ in the ledger."""
    given = {}
    for name, field in tool.fields.items():
        value = arguments.get(name)
        if value is None and field.required:
            raise Unfit(f"{tool.name} needs '{name}': {field.meaning}")
        if value is not None:
            given[name] = _typed(tool, name, field, value)
    return given


def _typed(tool: Tool, name: str, field: Field, value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str) and field.kind != "string":
        try:
            value = float(value)  # small models write numbers in quotes
        except ValueError:
            value = None
    if isinstance(value, float) and field.kind == "integer" and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, _KINDS[field.kind]):
        raise Unfit(f"'{name}' of {tool.name} must be a {field.kind}")
    return value
