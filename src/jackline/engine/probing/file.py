"""Whether a file was written: by what it holds now. It reads that one file, and starts nothing."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from jackline.domain.secrets import REDACTED
from jackline.engine.probing.finding import DID_NOT, HAPPENED, Finding, together, unknown
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.engine.probing.scene import Scene

_MOST_BYTES = 64 * 1024 * 1024
_PATH = ("file_path", "filePath", "path", "absolute_path", "file", "filename")
_CONTENT = ("content", "contents", "text", "file_text")
_OLD = ("old_string", "oldString", "old_str", "old")
_NEW = ("new_string", "newString", "new_str", "new")


class _Edit(NamedTuple):
    """One text in the place of another."""

    old: str
    new: str


def look(scene: Scene) -> Finding:
    """Compare the file with what the call was to make of it."""
    path = scene.field(*_PATH)
    if not path:
        return unknown("the call's input is not whole, or names no file")
    content, edits = scene.field(*_CONTENT), _edits(scene.input)
    if content is None and not edits:
        return unknown("the call does not tell what was to be written")
    if REDACTED in f"{content}{edits}":
        return unknown("what was to be written is kept without its secrets, and cannot be compared")
    text = _read(os.path.join(scene.workspace, path))
    if isinstance(text, Finding):
        return text if content is not None or text.verdict != DID_NOT else unknown(text.evidence)
    if content is not None:
        return _written(path, text, content)
    return together([_edited(path, text, edit) for edit in edits])


def _edits(given: Any) -> list[_Edit]:  # noqa: ANN401 - a tool's input is any JSON
    """The edits of a call, one or several."""
    several = given.get("edits")
    found = [_edit(one) for one in several] if isinstance(several, list) else [_edit(given)]
    whole = [one for one in found if one is not None]
    return whole if len(whole) == len(found) else []


def _edit(given: Any) -> _Edit | None:  # noqa: ANN401
    if not isinstance(given, dict):
        return None
    old, new = _text(given, _OLD), _text(given, _NEW)
    return None if old is None or new is None or old == new else _Edit(old, new)


def _text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((_lines(given[name]) for name in names if isinstance(given.get(name), str)), None)


def _read(path: str) -> str | Finding:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                return unknown(f"{path} is no file that can be compared")
            return _lines(file.read().decode("utf-8", "surrogateescape"))
    except (FileNotFoundError, NotADirectoryError):
        return Finding(DID_NOT, f"{path} is not there")
    except (OSError, ValueError) as error:
        return unknown(f"{path} cannot be read: {error}")


def _lines(text: str) -> str:
    """Tools write the line ends that a file had."""
    return text.replace("\r\n", "\n")


def _written(path: str, text: str, content: str) -> Finding:
    if text == _lines(content):
        return Finding(HAPPENED, f"{path} has the content that was to be written", path)
    return Finding(DID_NOT, f"{path} has other content than what was to be written")


def _edited(path: str, text: str, edit: _Edit) -> Finding:
    """An edit that only adds holds the old text, and one that only takes away is held by it."""
    old_there = bool(edit.old) and edit.old in (text.replace(edit.new, "\0") if edit.old in edit.new else text)
    new_there = edit.new in (text.replace(edit.old, "\0") if edit.new and edit.new in edit.old else text)
    if not edit.new:  # a deletion: nothing new can be looked for
        new_there = not old_there
    if not edit.old:  # it makes the file
        old_there = not (new_there := text == edit.new)
    match old_there, new_there:
        case False, True:
            return Finding(HAPPENED, f"{path} has the new text and not the old one", path)
        case True, False:
            return Finding(DID_NOT, f"{path} has the old text and not the new one")
    return unknown(f"{path} has {'both the old and the new' if old_there else 'neither the old nor the new'} text")
