"""Probe: was a file written? It reads that one file, and starts nothing."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from jackline.engine.probes.findings import DID_NOT, HAPPENED, ProbeFinding, build_unknown, combine_findings
from jackline.named import NamedTuple
from jackline.secrets.redactor import REDACTED

if TYPE_CHECKING:
    from jackline.engine.probes.findings import ProbeContext

_MOST_BYTES = 64 * 1024 * 1024
_PATH = ("file_path", "filePath", "path", "absolute_path", "file", "filename")
_CONTENT = ("content", "contents", "text", "file_text")
_OLD = ("old_string", "oldString", "old_str", "old")
_NEW = ("new_string", "newString", "new_str", "new")


class _Edit(NamedTuple):
    """One text replaced by another."""

    old: str
    new: str


def probe_file(scene: ProbeContext) -> ProbeFinding:
    """Compare the file with what the call would have written."""
    path = scene.find_field(*_PATH)
    if not path:
        return build_unknown("the call's input is incomplete, or names no file")
    content, edits = scene.find_field(*_CONTENT), _parse_edits(scene.input)
    if content is None and not edits:
        return build_unknown("the call does not contain the text to write")
    if REDACTED in f"{content}{edits}":
        return build_unknown("the text to write is stored without its secrets and cannot be compared")
    text = _read_text(os.path.join(scene.workspace, path))
    if isinstance(text, ProbeFinding):
        return text if content is not None or text.verdict != DID_NOT else build_unknown(text.evidence)
    if content is not None:
        return _compare_content(path, text, content)
    return combine_findings([_compare_edit(path, text, edit) for edit in edits])


def _parse_edits(given: Any) -> list[_Edit]:  # noqa: ANN401 - a tool's input is any JSON
    """The edits of a call, one or several."""
    several = given.get("edits")
    found = [_parse_edit(one) for one in several] if isinstance(several, list) else [_parse_edit(given)]
    whole = [one for one in found if one is not None]
    return whole if len(whole) == len(found) else []


def _parse_edit(given: Any) -> _Edit | None:  # noqa: ANN401
    if not isinstance(given, dict):
        return None
    old, new = _find_text(given, _OLD), _find_text(given, _NEW)
    return None if old is None or new is None or old == new else _Edit(old, new)


def _find_text(given: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((_normalise_newlines(given[name]) for name in names if isinstance(given.get(name), str)), None)


def _read_text(path: str) -> str | ProbeFinding:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
                return build_unknown(f"{path} is not a file that can be compared")
            return _normalise_newlines(file.read().decode("utf-8", "surrogateescape"))
    except (FileNotFoundError, NotADirectoryError):
        return ProbeFinding(verdict=DID_NOT, evidence=f"{path} does not exist")
    except (OSError, ValueError) as error:
        return build_unknown(f"{path} cannot be read: {error}")


def _normalise_newlines(text: str) -> str:
    """Tools keep the line endings that a file has."""
    return text.replace("\r\n", "\n")


def _compare_content(path: str, text: str, content: str) -> ProbeFinding:
    if text == _normalise_newlines(content):
        return ProbeFinding(verdict=HAPPENED, evidence=f"{path} has the content of the call", external_id=path)
    return ProbeFinding(verdict=DID_NOT, evidence=f"{path} has other content than the call")


def _compare_edit(path: str, text: str, edit: _Edit) -> ProbeFinding:
    """Compare an edit; the new text may contain the old one, or the old one the new."""
    old_there = bool(edit.old) and edit.old in (text.replace(edit.new, "\0") if edit.old in edit.new else text)
    new_there = edit.new in (text.replace(edit.old, "\0") if edit.new and edit.new in edit.old else text)
    if not edit.new:  # a deletion has no new text to find
        new_there = not old_there
    if not edit.old:  # it creates the file
        old_there = not (new_there := text == edit.new)
    match old_there, new_there:
        case False, True:
            return ProbeFinding(
                verdict=HAPPENED, evidence=f"{path} has the new text but not the old one", external_id=path
            )
        case True, False:
            return ProbeFinding(verdict=DID_NOT, evidence=f"{path} has the old text but not the new one")
    return build_unknown(
        f"{path} has {'both the old and the new' if old_there else 'neither the old nor the new'} text"
    )
