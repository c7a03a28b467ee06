"""What the inputs of well-known tools look like, and what is wrong with one that does not. Pure; it judges shape only.

The shapes were read from what the CLIs themselves offer to a model. A tool that is not named here gets no opinion, a
field that is not named here is no mistake: a newer CLI may know more than this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST = 40


class Field(NamedTuple):
    """One field of an input, by all the names that it has among the CLIs; `hint` says what belongs into it."""

    names: tuple[str, ...]
    kind: str = "text"
    hint: str = ""
    required: bool = True
    filled: bool = False  # nothing but blanks is as good as missing


def _optional(kind: str, *names: str) -> tuple[Field, ...]:
    return tuple(Field(names=(name,), kind=kind, required=False) for name in names)


_FILE = Field(("file_path", "filePath", "absolute_path", "path"), hint="name the file", filled=True)
_CLAUDE_FILE = _FILE._replace(names=("file_path",))
_COMMAND = Field(("command",), hint="give the command to run", filled=True)
_CONTENT = Field(("content",), hint="give the whole new content of the file")
_OLD = Field(("old_string", "oldString"), hint="give the exact text that is to be replaced")
_NEW = Field(("new_string", "newString"), hint="give the text to put there")
_PATTERN = Field(("pattern",), hint="give the pattern to look for", filled=True)
_PROMPT = Field(("prompt",), hint="say what is to be done", filled=True)
_URL = Field(("url",), hint="give the whole address", filled=True)
_QUERY = Field(("query",), hint="say what to search for", filled=True)
_RUNNING = (*_optional("number", "timeout"), *_optional("switch", "run_in_background"))
_SLICE = _optional("number", "offset", "limit")

# What real CLIs offer, each under the very name that its door reports.
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
# Words that many agents share, each with fields of its own: only what is given is judged, nothing is missed.
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


def mistake(tool: str, given: object) -> str:
    """What is wrong with the input of a call, in one sentence that says what is wanted; empty if nothing is."""
    fields = _TOOLS.get(tool, _SHARED.get(tool))
    if fields is None:
        return ""
    if not isinstance(given, dict):
        needs = " and ".join(f"'{field.names[0]}'" for field in fields if field.required)
        return f"{tool} needs an object as its input{f', with {needs}' if needs else ''}"
    return next(filter(None, (_wrong(tool, field, given) for field in fields)), "")


def _wrong(tool: str, field: Field, given: Mapping[str, object]) -> str:
    name = next((one for one in field.names if given.get(one) is not None), field.names[0])
    value, (wanted, fits) = given.get(name), _KINDS[field.kind]
    hint = f": {field.hint}" if field.hint else ""
    if value is None:
        return f"{tool} needs '{name}' ({wanted}){hint}" if field.required else ""
    if not fits(value):
        return f"'{name}' of {tool} must be {wanted}, not {_shown(value)}{hint}"
    if field.filled and _is_blank(value):
        return f"'{name}' of {tool} is empty{hint}"
    if field.filled and "\0" in str(value):
        return f"'{name}' of {tool} holds a NUL character: leave it out"
    return ""


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: object) -> bool:
    """Also one in quotes: models write them so, and the CLIs take them."""
    if isinstance(value, str):
        return value.strip().removeprefix("-").replace(".", "", 1).isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_blank(value: object) -> bool:
    words = value if isinstance(value, list) else [value]
    return not any(str(one).strip() for one in words)


def _shown(value: object) -> str:
    """What was given instead, short enough for one line."""
    names = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    said = names.get(type(value))
    return said or f"{str(value)[:_LONGEST]!r}"


_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "command": ("text, or a list of texts", lambda value: isinstance(value, str) or _is_texts(value)),
    "number": ("a number", _is_number),
    "switch": ("true or false", lambda value: isinstance(value, bool) or value in ("true", "false")),
    "list": ("a list", lambda value: isinstance(value, list)),
}
