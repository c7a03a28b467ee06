"""Normalizes tool inputs, and builds the keys and targets of calls. Pure.

Different spellings of one call must give the same key (key order, JSON white space, absolute or relative workspace
paths). Two different calls must never share a key, so nothing else is normalized.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

from jackline.digests import sign_text
from jackline.domain.events import NOTHING, canonical
from jackline.policy.rules import WHOLE_COMMAND, is_host_input

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.policy.rules import Rule

_PATH_NAMES = frozenset(
    {"path", "paths", "file", "files", "file_path", "filepath", "filename", "dir", "directory", "cwd", "workdir",
     "notebook_path", "absolute_path", "dir_path"}
)  # fmt: skip
_COMMAND_NAMES = frozenset({"command", "cmd", "script"})
_MOVES = re.compile(r"(?:^|[\s;|&(])(?:cd|pushd|-C)\b(?!\s*[\"']?\.[\"']?(?:[\s;|&)]|$))")
_LONGEST = 100_000  # longer commands are not parsed either, and need no normalization
_EFFECT = "shell"  # instead of a tool's name
_FIELD = re.compile(r"\{([A-Za-z0-9_.:@<-][A-Za-z0-9_.:@<|-]*)\}")


def parse_input(text: str) -> Any:  # noqa: ANN401 - a tool's input is any JSON
    """Parse a tool input as JSON, or return the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # deep nesting must not fail
        return text


def normalize_input(value: Any, workspace: str) -> Any:  # noqa: ANN401
    """Normalize a tool input."""
    return _normalize_value(value, "", _normalize_path(workspace))


def _normalize_value(value: Any, name: str, workspace: str) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {str(key): _normalize_value(item, str(key), workspace) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_value(item, name, workspace) for item in value]
    if not isinstance(value, str):
        return value
    if name in _PATH_NAMES:
        return _make_relative(value, workspace)
    if name in _COMMAND_NAMES:
        return _make_words_relative(value, workspace)
    return value


def _make_relative(path: str, workspace: str) -> str:
    if "://" in path:
        return path  # a URL keeps its double slash
    whole = _normalize_path(posixpath.join(workspace, path))
    if whole == workspace:
        return "."
    prefix = workspace if workspace == "/" else workspace + "/"
    return whole.removeprefix(prefix)


def _normalize_path(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _make_words_relative(command: str, workspace: str) -> str:
    """Make absolute workspace paths in a command relative, word by word; change nothing else."""
    if workspace == "/" or len(command) > _LONGEST or workspace not in command:
        return command
    place = re.escape(workspace)
    # A program keeps its "./", because a bare name would be searched on the PATH.
    program = re.compile(rf"((?:^|[;|&(])\s*){place}/+(?=[\w.])")
    word = re.compile(rf"(?<![^\s\"'=:(<>;|&]){place}(?:/+(?=[\w.*?\[])|(?P<all>/*)(?=[\s\"';|&)<>]|$))")
    relative = word.sub(lambda found: "" if found["all"] is None else ".", program.sub(r"\1./", command))
    # After a `cd`, a relative path is another file, so the two spellings are different calls.
    return command if _MOVES.search(relative) else relative


def build_key(
    secret: bytes,
    lineage: str,
    rule: Rule,
    tool: str,
    normal: Any,  # noqa: ANN401
    fields: Mapping[str, Any] = NOTHING,
) -> str:
    """Build the key that identifies equal calls. An HMAC, so that it reveals nothing about a redacted input.

    `fields` come from the classification and the host. Without a key in the rule, a shell call is identified by its
    command and folder, because the model rewords the description each time.
    """
    chosen = {name: _find_first(normal, fields, name) for name in rule.key}
    if all(value is None for value in chosen.values()):
        # No field of the rule's key is present; without a fallback, all such calls would be equal.
        is_shell = all(name in fields for name in WHOLE_COMMAND)
        chosen = {name: fields[name] for name in WHOLE_COMMAND} if is_shell else normal
    text = canonical([lineage, rule.name, tool, sorted(rule.key), chosen])
    return sign_text(secret, text)


def build_effect_key(secret: bytes, lineage: str, rule: Rule, normal: Any, fields: Mapping[str, Any]) -> str:  # noqa: ANN401
    """Build the key of one effect of a shell call: the same in every shell tool, and with any other commands."""
    names = rule.key
    chosen = {name: _find_first(normal, fields, name) for name in names}
    if all(value is None for value in chosen.values()):
        names = ("program", "arguments", "folder", "stdin")  # no field of the rule's key is present
        chosen = {name: fields.get(name) for name in names}
    return sign_text(secret, canonical([lineage, rule.name, _EFFECT, sorted(names), chosen]))


def join_effect_keys(secret: bytes, parts: Sequence[str]) -> str:
    """Build the key of a call with several effects."""
    return sign_text(secret, canonical([_EFFECT, *parts]))


def find_host_inputs(rule: Rule, fields: Mapping[str, Any]) -> frozenset[str]:
    """Return the host inputs that key and target need; an alternative is skipped if an earlier one is known."""
    host_inputs: set[str] = set()
    for text in (*rule.key, *find_field_names(rule.target)):
        for name in text.split("|"):
            if is_host_input(name) and (not name.startswith("file:") or fields.get(name.removeprefix("file:"))):
                host_inputs.add(name)
            if fields.get(name):
                break
    return frozenset(host_inputs)


def build_target(rule: Rule, normal: Any, fields: Mapping[str, Any] = NOTHING) -> str:  # noqa: ANN401
    """Build the target of a call from the rule's pattern; empty if the rule has none."""

    def render_field(found: re.Match[str]) -> str:
        value = _find_first(normal, fields, found[1])
        return (value if isinstance(value, str) else canonical(value)).replace("\n", ", ")

    return _FIELD.sub(render_field, rule.target)


def remove_fields(pattern: str) -> str:
    """Remove the fields in braces from a target pattern."""
    return _FIELD.sub("", pattern)


def find_field_names(pattern: str) -> list[str]:
    """Return the field names in braces of a target pattern."""
    return _FIELD.findall(pattern)


def _find_first(value: Any, fields: Mapping[str, Any], alternatives: str) -> Any:  # noqa: ANN401
    """Return the first present field of `a|b`; an empty last alternative means empty text."""
    for name in alternatives.split("|"):
        if not name and alternatives:
            return ""
        if name in fields:
            found = fields[name]
        else:
            found = value
            for part in name.split("."):
                found = found.get(part) if isinstance(found, dict) else None
        if found is not None and (found != "" or name not in fields):
            return found
    return None
