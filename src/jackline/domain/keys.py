"""Normal forms of tool inputs, and the keys and targets made from them. Pure.

Two spellings of one call must give one key (key order, white space of JSON, absolute or relative paths of the
workspace), and two different calls must never share one; so nothing but these spellings is touched.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

from jackline.domain.combining import WHOLE
from jackline.domain.events import NOTHING, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.rule import Rule

_PATH_NAMES = frozenset(
    {"path", "paths", "file", "files", "file_path", "filepath", "filename", "dir", "directory", "cwd", "workdir",
     "notebook_path", "absolute_path", "dir_path"}
)  # fmt: skip
_COMMAND_NAMES = frozenset({"command", "cmd", "script"})
_MOVES = re.compile(r"(?:^|[\s;|&(])(?:cd|pushd|-C)\b(?!\s*[\"']?\.[\"']?(?:[\s;|&)]|$))")
_LONGEST = 100_000  # nobody parses a longer command either, and its letters alone tell it apart
_FIELD = re.compile(r"\{([A-Za-z0-9_.:@<-][A-Za-z0-9_.:@<|-]*)\}")


def parse_input(text: str) -> Any:  # noqa: ANN401 - a tool's input is any JSON
    """A tool input given as text: JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # too deeply nested to be read is no reason to fail
        return text


def normalise(value: Any, workspace: str) -> Any:  # noqa: ANN401
    """The one spelling of a tool input."""
    return _normal(value, "", _absolute(workspace))


def _normal(value: Any, name: str, workspace: str) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {str(key): _normal(item, str(key), workspace) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(item, name, workspace) for item in value]
    if not isinstance(value, str):
        return value
    if name in _PATH_NAMES:
        return _relative(value, workspace)
    if name in _COMMAND_NAMES:
        return _relative_words(value, workspace)
    return value


def _relative(path: str, workspace: str) -> str:
    if "://" in path:
        return path  # an address: two slashes in it are not one
    whole = _absolute(posixpath.join(workspace, path))
    if whole == workspace:
        return "."
    prefix = workspace if workspace == "/" else workspace + "/"
    return whole.removeprefix(prefix)


def _absolute(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _relative_words(command: str, workspace: str) -> str:
    """Absolute paths of the workspace inside a command, word by word; the rest stays to the letter."""
    if workspace == "/" or len(command) > _LONGEST or workspace not in command:
        return command
    place = re.escape(workspace)
    # A program keeps its "./": the name alone would be looked for on the PATH.
    program = re.compile(rf"((?:^|[;|&(])\s*){place}/+(?=[\w.])")
    word = re.compile(rf"(?<![^\s\"'=:(<>;|&]){place}(?:/+(?=[\w.*?\[])|(?P<all>/*)(?=[\s\"';|&)<>]|$))")
    relative = word.sub(lambda found: "" if found["all"] is None else ".", program.sub(r"\1./", command))
    # After a `cd` to elsewhere, a relative path is another file: then the two spellings are two calls.
    return command if _MOVES.search(relative) else relative


def key(
    secret: bytes,
    lineage: str,
    rule: Rule,
    tool: str,
    normal: Any,  # noqa: ANN401
    fields: Mapping[str, Any] = NOTHING,
) -> str:
    """What makes two calls the same: HMAC, so that a key tells nothing about a redacted input.

    `fields` are what judging found out, with what the host told. A shell's call without a rule's own key is its
    command and folder: a model words the description anew each time.
    """
    chosen = {name: _first(normal, fields, name) for name in rule.key}
    if all(value is None for value in chosen.values()):
        # Nothing that the rule names is there: without this, all such calls would be one.
        chosen = {name: fields[name] for name in WHOLE} if _is_shell(fields) else normal
    text = canonical([lineage, rule.name, tool, sorted(rule.key), chosen])
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def target(rule: Rule, normal: Any, fields: Mapping[str, Any] = NOTHING) -> str:  # noqa: ANN401
    """What the call touches, by the rule's pattern; empty when the rule names none."""
    return _FIELD.sub(lambda found: _plain(_first(normal, fields, found[1])).replace("\n", ", "), rule.target)


def without_fields(pattern: str) -> str:
    """A target without what stands in braces."""
    return _FIELD.sub("", pattern)


def names_in(pattern: str) -> list[str]:
    """What stands in braces in a target."""
    return _FIELD.findall(pattern)


def _is_shell(fields: Mapping[str, Any]) -> bool:
    return all(name in fields for name in WHOLE)


def _first(value: Any, fields: Mapping[str, Any], alternatives: str) -> Any:  # noqa: ANN401
    """The first of `a|b` that is there; nothing after the last `|` stands for an empty text."""
    for name in alternatives.split("|"):
        if not name and alternatives:
            return ""
        found = fields[name] if name in fields else _lookup(value, name)
        if found is not None and (found != "" or name not in fields):
            return found
    return None


def _lookup(value: Any, dotted: str) -> Any:  # noqa: ANN401
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _plain(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else canonical(value)
