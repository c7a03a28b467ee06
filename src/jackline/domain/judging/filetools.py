"""Finds the paths that the agents' file tools write or delete. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain.judging.given import Change
from jackline.domain.shell import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "target_file", "filename")
_PATCHES = ("input", "patch", "patchText", "diff")
_PATCHING = frozenset({"apply_patch", "patch"})
_DELETING = frozenset({"delete_file"})
_PATCH_LINE = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool"})  # one tool that also reads


def changes(tool: str, given: Any) -> Iterator[Change]:  # noqa: ANN401 - any JSON
    """Yield the changes that a call of a file tool would make."""
    if not isinstance(given, dict):
        if tool in _PATCHING and isinstance(given, str):
            yield from patched(given)
        return
    if tool in _EDITORS and given.get("command") == "view":
        return
    for name in _PATHS:
        path = given.get(name)
        if isinstance(path, str) and path:
            yield Change(_build_word(path), deletes=tool in _DELETING)
    for name in _PATCHES:
        if tool in _PATCHING and isinstance(given.get(name), str):
            yield from patched(given[name])


def patched(text: str) -> Iterator[Change]:
    """Yield the files of a patch in the `*** Update File:` format."""
    for verb, path in _PATCH_LINE.findall(text):
        yield Change(_build_word(path.rstrip()), deletes=verb == "Delete File")


def _build_word(path: str) -> Word:
    """These tools do not use a shell, but some expand `~`."""
    return Word(path, exact=not path.startswith("~"))
