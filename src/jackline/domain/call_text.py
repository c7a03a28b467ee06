"""Describes a tool call for people: the command or the edit itself, in one line or whole. Pure.

The input is what an agent gave its tool: a value, or the ledger's JSON text, which may be cut. Control characters are
replaced. The caller redacts, and cuts to the width.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

from jackline.formatting import make_printable, make_readable, pluralize
from jackline.policy.agreements import ASKS
from jackline.policy.tool_names import COMMAND_FIELDS, FOLDER_FIELDS, SHELL_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.domain.records import Call

FOLDER = "cwd"  # in `Call.external`: the folder that a call started in, if it is not the workspace
EFFECTS = "effects"  # in `Call.external`: rule, key and target of each effect of a call with several
HOST_NOTES = frozenset({FOLDER, EFFECTS, ASKS})  # names in `Call.external` that are not shown as external ids
KEPT = "kept"  # in `Call.external`: the refs that hold the work which the call discarded
LINE_END = " ⏎ "  # between two lines of a command that is shown in one
_MOST = 4_000  # characters of an input that one line can need
_MOST_LINES = 20  # of a call that fits a screen
_VERBS = {
    "read": "read Read read_file read_many_files view view_image zoom_image NotebookRead cat_file open_file",
    "list": "list LS ls list_files list_directory list_dir",
    "grep": "grep Grep grep_search search_file_content search search_files codesearch codebase_search file_search",
    "find": "glob Glob find_files",
    "fetch": "WebFetch web_fetch webfetch fetch",
    "search the web": "WebSearch web_search websearch google_web_search",
    "edit": "edit Edit MultiEdit multiedit replace insert_edit_into_file patch apply_patch str_replace_editor "
    "str_replace_based_edit_tool search_replace NotebookEdit notebook_edit edit_notebook",
    "write": "write Write write_file create_file write_to_file",
    "delete": "delete_file",
    "task": "Task Agent task agent spawn_agent delegate_to_agent",
    "plan": "TodoWrite todowrite write_todos todo_write update_plan",
    "skill": "Skill skill activate_skill",
    "commit": "commit",
    "ask": "AskUserQuestion ask_user request_user_input question",
}
_VERB_OF = {tool: verb for verb, tools in _VERBS.items() for tool in tools.split()}
_PATH_FIELDS = (
    "file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "filepath", "filename", "file",
    "paths", "files", "directory", "dir_path",
)  # fmt: skip
_TEXT_FIELDS = (
    "pattern", "query", "url", "description", "prompt", "message", "title", "question", "skill", "name", "text",
)  # fmt: skip
_OLD_FIELDS, _NEW_FIELDS = ("old_string", "oldString", "old_str"), ("new_string", "newString", "new_str")
_CONTENT_FIELDS = ("content", "file_text", "contents", "new_source")
_PATCH_FIELDS = ("patch", "patchText", "input", "diff")
_CHANGE_FIELDS = (("edits",), (*_OLD_FIELDS, *_NEW_FIELDS), _CONTENT_FIELDS, _PATCH_FIELDS)
_USUAL_EDIT_FIELDS = frozenset({"replace_all", "replaceAll", "expected_replacements", "instruction", "command"})
_SERVER_TOOL = re.compile(r"mcp__(.+?)__(.+)|(?:mcp_)?(jackline)_(.+)")
_PATCHED_FILE = re.compile(r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ (?:b/)?)(.+)$", re.MULTILINE)
_SHELL_WRAPPER = 3  # words of `bash -lc COMMAND`
_SHELLS = frozenset(f"{folder}{shell}" for folder in ("", "/bin/", "/usr/bin/") for shell in ("bash", "sh", "zsh"))
# Fields of a shell that do not change what runs, or that are shown otherwise.
_USUAL_FIELDS = frozenset(
    {
        *COMMAND_FIELDS, *FOLDER_FIELDS, "description", "timeout", "timeout_ms", "run_in_background", "is_background",
        "yield_time_ms", "max_output_tokens", "justification",
    }
)  # fmt: skip
_EMPTY_PART = re.compile(r"(?:null)?(?<!\[):(?=:|\Z)|[:/]null(?=[:/]|\Z)")
_CUT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_TOKEN = re.compile(r"""[{}\[\],]|"(?:[^"\\]|\\.)*+(?:"|(?P<cut>\\?\Z))""", re.DOTALL)
_LONGEST_CUT = 100_000  # the ledger cuts at 2 KB
_PLAIN = re.compile(r"[^\s\"'=]+")


def describe_call(tool: str, given: object, *, workspace: str = "", folder: str = "") -> str:
    """Describe a call in one line, such as `$ pytest -q (in web/)` or `edit src/a.py +2 -1`.

    `folder` is where the call ran, if the agent reported it; it is shown if it is not the workspace.
    """
    value = _parse_input(given)
    fields = value if isinstance(value, dict) else {}
    text = _describe_value(tool, value, fields, workspace)
    return " ".join(make_printable(text)[:_MOST].split()) + _format_folder(tool, fields, workspace, folder)


def format_call(tool: str, given: object, *, workspace: str = "", folder: str = "") -> str:
    """Format the whole call, in as many lines as it needs."""
    value = _parse_input(given)
    fields = value if isinstance(value, dict) else {}
    where = _format_folder(tool, fields, workspace, folder)
    command = find_command(tool, value)
    if command is not None:
        others = _format_fields({name: fields[name] for name in fields if name not in _USUAL_FIELDS}, workspace)
        added = f"\n(with {others})" if others else ""
        return make_readable(f"$ {command}{added}") + (f"\n{where.strip()}" if where else "")
    lines = [f"{_VERB_OF[tool]} {path}" for path in _list_paths(fields, workspace)] if tool in _VERB_OF else []
    is_change = _VERB_OF.get(tool) in {"edit", "write"} and _has_one_change(fields)
    changed = [_find_text(fields, _PATCH_FIELDS) or "\n".join(_format_changes(fields))] if is_change else []
    if not lines or not any(changed):
        whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        lines, changed = [f"{tool}{where}"], [whole] if value not in (None, "", {}) else []
    return make_readable("\n".join([*lines, *changed]))


def describe_length(text: str) -> str:
    """A line below the text of a call whose beginning may have left the screen; empty if it is short."""
    lines = len(text.splitlines())
    if lines <= _MOST_LINES and len(text) <= _MOST:
        return ""
    return f"({pluralize(lines, 'line')}, {len(text)} characters: read it from its beginning)"


def describe_ledger_call(call: Call, workspace: str = "") -> str:
    """Describe a call of the ledger in one line."""
    return describe_call(call.tool, call.input, workspace=workspace, folder=find_call_folder(call))


def describe_effect(call: Call, workspace: str = "") -> str:
    """Describe a call of the ledger in one line, with its target."""
    target = format_target(call.target)
    return describe_ledger_call(call, workspace) + (f" → {target}" if target else "")


def format_target(target: str) -> str:
    """Format a target without its empty parts, such as the repository in `pr::main`."""
    return make_printable(_EMPTY_PART.sub("", target)).strip().rstrip(":")


def find_kept_refs(call: Call) -> list[str]:
    """The refs that hold the work which the call discarded."""
    found = _parse_input(call.external) if f'"{KEPT}"' in call.external else {}
    return str(found.get(KEPT, "")).split() if isinstance(found, dict) else []


def find_call_folder(call: Call) -> str:
    """The folder in which the call started; empty if it is the workspace, or not known."""
    if not call.external:
        return ""
    found = _parse_input(call.external)
    folder = found.get(FOLDER) if isinstance(found, dict) else None
    return folder if isinstance(folder, str) else ""


def find_command(tool: str, value: object) -> str | None:
    """The command of a shell, without the shell that wraps it; None for any other tool."""
    if tool not in SHELL_TOOLS:
        return None
    if not isinstance(value, dict):
        return value if isinstance(value, str) else None
    # With two fields, only the tool knows which one it runs.
    found = [text for name in COMMAND_FIELDS if (text := _join_words(value.get(name)))]
    return "\n".join(found) if found else None


def _join_words(found: object) -> str:
    if not isinstance(found, list):
        return found if isinstance(found, str) else ""
    words = [str(word) for word in found]
    if len(words) == _SHELL_WRAPPER and words[0] in _SHELLS and words[1] in {"-c", "-lc"}:
        return words[2]
    from shlex import join

    return join(words)


def _describe_value(tool: str, value: object, fields: Mapping[str, Any], workspace: str) -> str:
    command = find_command(tool, value)
    if command is not None:
        return f"$ {_join_lines(command)}"
    verb, paths = _VERB_OF.get(tool, ""), list(_list_paths(fields, workspace))
    if verb in _DESCRIBERS and (text := _DESCRIBERS[verb](fields, ", ".join(paths))):
        return f"{verb}{text}"
    server = _SERVER_TOOL.fullmatch(tool)
    if server:
        tool = ".".join(part for part in server.groups() if part)
    return f"{tool} {_join_lines(_format_fields(value, workspace))}".rstrip()


def _describe_file(fields: Mapping[str, Any], paths: str) -> str:
    first, last = fields.get("offset"), fields.get("limit")
    lines = f" from line {first}" if type(first) is int and first > 1 else ""
    lines += f", {pluralize(last, 'line')}" if lines and type(last) is int else ""
    return f" {paths}{lines}" if paths else ""


def _describe_change(fields: Mapping[str, Any], paths: str) -> str:
    if not paths:
        return ""
    added, removed = 0, 0
    for line in _format_changes(fields):
        added += line.startswith("+")
        removed += line.startswith("-")
    return f" {paths}" + (f" +{added}" if added else "") + (f" -{removed}" if removed else "")


def _describe_search(fields: Mapping[str, Any], paths: str) -> str:
    text = _find_text(fields, ("pattern", "query", "url"))
    return f" {_join_lines(text)}{f' in {paths}' if paths not in {'', '.'} else ''}" if text else ""


def _describe_text(fields: Mapping[str, Any], paths: str) -> str:
    text = _find_text(fields, _TEXT_FIELDS) or paths
    return f": {_join_lines(text)}" if text else ""


def _describe_plan(fields: Mapping[str, Any], _paths: str) -> str:
    steps = next(
        (one for one in (fields.get(name) for name in ("todos", "plan", "items")) if isinstance(one, list)), []
    )
    return f": {pluralize(len(steps), 'step')}" if steps else ""


_DESCRIBERS: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "read": _describe_file,
    "list": lambda _fields, paths: f" {paths or '.'}",
    "grep": _describe_search,
    "find": _describe_search,
    "fetch": _describe_search,
    "search the web": _describe_text,
    "edit": _describe_change,
    "write": _describe_change,
    "delete": lambda _fields, paths: f" {paths}" if paths else "",
    "task": _describe_text,
    "plan": _describe_plan,
    "skill": _describe_text,
    "commit": _describe_text,
    "ask": _describe_text,
}


def _has_one_change(fields: Mapping[str, Any]) -> bool:
    """Whether the lines of a change show all of an input: one path and one kind of text, and nothing unusual."""
    edits = fields.get("edits")
    given = [names for names in _CHANGE_FIELDS if any(fields.get(name) for name in names)]
    paths = [name for name in _PATH_FIELDS if fields.get(name)]
    known = {*_PATH_FIELDS, *(name for names in _CHANGE_FIELDS for name in names), *_USUAL_EDIT_FIELDS}
    is_usual = not isinstance(edits, list) or all(isinstance(edit, dict) for edit in edits)
    return is_usual and len(given) == 1 and len(paths) <= 1 and fields.keys() <= known


def _format_changes(fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines that an edit removes and adds, as far as its input shows them."""
    edits = fields.get("edits")
    for edit in [one for one in edits if isinstance(one, dict)] if isinstance(edits, list) else [fields]:
        yield from (f"-{line}" for line in _find_text(edit, _OLD_FIELDS).splitlines())
        yield from (f"+{line}" for line in _find_text(edit, (*_NEW_FIELDS, *_CONTENT_FIELDS)).splitlines())
    patch = _find_text(fields, _PATCH_FIELDS)
    yield from (line for line in patch.splitlines() if not line.startswith(("+++", "---", "***")))


def _list_paths(fields: Mapping[str, Any], workspace: str) -> Iterator[str]:
    changes = fields.get("changes")
    if isinstance(changes, list):  # of codex: one for each file
        named = [one.get("path") for one in changes if isinstance(one, dict)]
    else:
        found = next((fields[name] for name in _PATH_FIELDS if fields.get(name)), None)
        named = found if isinstance(found, list) else [found] if found else []
        named = named or _PATCHED_FILE.findall(_find_text(fields, _PATCH_FIELDS))
    yield from (_shorten_path(path, workspace) for path in named if isinstance(path, str))


def _find_text(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((found for name in names if isinstance(found := fields.get(name), str) and found), "")


def _format_fields(value: object, workspace: str) -> str:
    """The fields of an input as `name=value`, or any other input as it is."""
    if isinstance(value, dict):
        return " ".join(f"{name}={_format_field(name, item, workspace)}" for name, item in value.items())
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def _format_field(name: object, value: object, workspace: str) -> str:
    if isinstance(value, str) and name in _PATH_FIELDS:
        value = _shorten_path(value, workspace)
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)


def _join_lines(text: str) -> str:
    """Join the lines of a text; blank ones are left out."""
    lines = (line.strip() for line in text[:_MOST].splitlines())
    return LINE_END.join(line for line in lines if line) + (" …" if len(text) > _MOST else "")


def _shorten_path(path: str, workspace: str) -> str:
    root = workspace.rstrip("/")
    if not root or not f"{path}/".startswith(f"{root}/"):
        return path
    return path[len(root) :].strip("/") or "."


def _format_folder(tool: str, fields: Mapping[str, Any], workspace: str, folder: str) -> str:
    """The folder of a call, if it is not the workspace; other tools than shells name their files instead."""
    if tool in SHELL_TOOLS:
        given = _find_text(fields, FOLDER_FIELDS)
        folder = posixpath.join(folder, given) if given else folder
    if not folder:
        return ""
    shown = posixpath.normpath(_shorten_path(folder, workspace))
    return "" if shown == "." else f" (in {make_printable(shown).rstrip('/')}/)"


# --- JSON that may be cut


def _parse_input(given: object) -> Any:  # noqa: ANN401 - any JSON
    """Parse the ledger's JSON text; a text that is not JSON is returned as it is."""
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return _parse_cut(given) if given.startswith("{") else given


def _parse_cut(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse the beginning of a JSON text: its open values are closed; the last field is left out if it is not begun."""
    if len(text) > _LONGEST_CUT:
        return text
    closers: list[str] = []
    last_comma, end = 0, text
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                closers.append("}" if token[0] == "{" else "]")
            case "}" | "]" if closers:
                closers.pop()
            case "," if len(closers) == 1:
                last_comma = token.start()
            case _ if token["cut"] is not None:
                end = _CUT_ESCAPE.sub(r"\1", text) + '…"'
    for closed in (end + "".join(reversed(closers)), text[:last_comma] + "}"):
        try:
            return json.loads(closed)
        except (ValueError, RecursionError):
            continue
    return text
