"""Validates the inputs of well-known tools, by type only. Pure.

The schemas are those that the CLIs send to their models. Unknown tools and unknown fields are valid: a newer CLI may
have more of them than this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_VALUE = 40
_TYPE_NAMES = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


class Field(NamedTuple):
    """One field of an input, with all names that it has among the CLIs; `hint` describes its value."""

    names: tuple[str, ...]
    kind: str = "text"
    hint: str = ""
    required: bool = True
    filled: bool = False  # a blank value counts as missing


def _optional(kind: str, *names: str) -> tuple[Field, ...]:
    return tuple(Field(names=(name,), kind=kind, required=False) for name in names)


_FILE = Field(("file_path", "filePath", "absolute_path", "path"), hint="name the file", filled=True)
_CLAUDE_FILE = _FILE._replace(names=("file_path",))
_COMMAND = Field(("command",), hint="give the command to run", filled=True)
_CONTENT = Field(("content",), hint="give the whole new content of the file")
_OLD = Field(("old_string", "oldString"), hint="give the exact text to replace")
_NEW = Field(("new_string", "newString"), hint="give the replacement text")
_PATTERN = Field(("pattern",), hint="give the pattern to search for", filled=True)
_PROMPT = Field(("prompt",), hint="describe the task", filled=True)
_URL = Field(("url",), hint="give the complete URL", filled=True)
_QUERY = Field(("query",), hint="give the search query", filled=True)
_RUNNING = (*_optional("number", "timeout"), *_optional("switch", "run_in_background"))
_SLICE = _optional("number", "offset", "limit")

# By the names that the CLIs report to the gate.
_TOOLS: Mapping[str, tuple[Field, ...]] = {
    # claude
    "Bash": (_COMMAND, *_RUNNING),
    "Read": (_CLAUDE_FILE, *_SLICE),
    "Write": (_CLAUDE_FILE, _CONTENT),
    "Edit": (_CLAUDE_FILE, _OLD, _NEW, *_optional("switch", "replace_all")),
    "MultiEdit": (
        _CLAUDE_FILE,
        Field(names=("edits",), kind="list", hint="give the edits, each with old_string and new_string"),
    ),
    "NotebookEdit": (Field(("notebook_path",), hint="name the notebook", filled=True), Field(("new_source",))),
    "Glob": (_PATTERN, *_optional("text", "path")),
    "Grep": (_PATTERN, *_optional("text", "path", "glob")),
    "WebFetch": (_URL, _PROMPT),
    "WebSearch": (_QUERY,),
    "Task": (_PROMPT, *_optional("text", "description", "subagent_type")),
    "Agent": (_PROMPT, *_optional("text", "description", "subagent_type")),
    "TodoWrite": (Field(names=("todos",), kind="list", hint="give the whole list"),),
    # codex
    "exec_command": (_COMMAND._replace(names=("cmd", "command"), kind="command"), *_optional("text", "workdir")),
    "shell_command": (_COMMAND._replace(kind="command"), *_optional("text", "workdir")),
    "local_shell": (_COMMAND._replace(kind="command"),),
    # gemini, qwen
    "run_shell_command": (_COMMAND, *_optional("switch", "is_background")),
    "write_file": (_FILE, _CONTENT),
    "replace": (_FILE, _OLD, _NEW),
    "read_file": (_FILE, *_SLICE),
    "grep_search": (_PATTERN,),
    "google_web_search": (_QUERY,),
    # opencode, kilo
    "todowrite": (Field(names=("todos",), kind="list", hint="give the whole list"),),
    "webfetch": (_URL,),
}
# Names that several agents use, each with its own fields: only the present ones are checked, none is required.
_SHARED: Mapping[str, tuple[Field, ...]] = {
    name: tuple(field._replace(required=False) for field in fields)
    for name, fields in {
        "bash": (_COMMAND._replace(kind="command"),),
        "shell": (_COMMAND._replace(names=("command", "cmd"), kind="command"),),
        "read": (_FILE,),
        "write": (_FILE, _CONTENT),
        "edit": (_FILE, _OLD, _NEW),
        "grep": (_PATTERN,),
        "glob": (_PATTERN,),
        "task": (_PROMPT,),
    }.items()
}


def find_input_mistake(tool: str, given: object) -> str:
    """Return what is wrong with the input of a call and what is needed, in one sentence; empty if it is valid."""
    fields = _TOOLS.get(tool, _SHARED.get(tool))
    if fields is None:
        return ""
    if not isinstance(given, dict):
        needs = " and ".join(f"'{field.names[0]}'" for field in fields if field.required)
        return f"{tool} needs an object as its input{f', with {needs}' if needs else ''}"
    return next(filter(None, (_find_field_mistake(tool, field, given) for field in fields)), "")


def _find_field_mistake(tool: str, field: Field, given: Mapping[str, object]) -> str:
    name = next((one for one in field.names if given.get(one) is not None), field.names[0])
    value, (wanted, fits) = given.get(name), _KINDS[field.kind]
    hint = f": {field.hint}" if field.hint else ""
    if value is None:
        return f"{tool} needs '{name}' ({wanted}){hint}" if field.required else ""
    if not fits(value):
        actual = _TYPE_NAMES.get(type(value)) or f"{str(value)[:_MOST_VALUE]!r}"
        return f"'{name}' of {tool} must be {wanted}, not {actual}{hint}"
    if field.filled and not any(str(one).strip() for one in (value if isinstance(value, list) else [value])):
        return f"'{name}' of {tool} is empty{hint}"
    if field.filled and "\0" in str(value):
        return f"'{name}' of {tool} contains a NUL character; remove it"
    return ""


def _is_command(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _is_number(value: object) -> bool:
    """Also accept a number in quotes, as models write them and the CLIs do."""
    if isinstance(value, str):
        return value.strip().removeprefix("-").replace(".", "", 1).isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "command": ("text, or a list of texts", _is_command),
    "number": ("a number", _is_number),
    "switch": ("true or false", lambda value: isinstance(value, bool) or value in ("true", "false")),
    "list": ("a list", lambda value: isinstance(value, list)),
}
