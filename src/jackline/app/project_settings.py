"""Finds the settings that a project makes for an agent's CLI, and reads what the CLI needs to start without them.

Which files these are is declared by each agent. It decides nothing about trust.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import TYPE_CHECKING

from jackline.digests import sha256
from jackline.domain.adapter import UntrustedSettings, is_any_text
from jackline.worktrees import find_repository, find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.adapter import ProjectFiles

_MOST_FILES = 5_000
_MOST_FOLDERS = 20_000
_MOST_MODULES = 3  # levels of submodules in submodules
_MODULE = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)
_LONGEST_TEXT = 256 * 1024
_PERMISSION_LISTS = ("allow", "ask", "deny")


def list_folders(workspace: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """List the folders that CLIs read: the workspace and its parents up to the root of the worktree.

    Without a repository these are all parents below the user's home, or up to the root of the file system. The home
    itself is not one of them: its settings are the user's own.
    """
    here = os.path.realpath(workspace)
    root, home = find_worktree(here), os.path.realpath(environ.get("HOME") or "/")
    in_repository = os.path.exists(os.path.join(root, ".git"))
    folders = [here]
    while here != (root if in_repository else "/"):
        here = os.path.dirname(here)
        if here == home and not in_repository:
            break
        folders.append(here)
    return tuple(folder for folder in folders if folder != home)


def find_settings(files: ProjectFiles, folder: str) -> list[str]:
    """List the settings in one folder, in a fixed order."""
    if not files.settings:
        return []
    texts = tuple(os.path.join(folder, name) for name in files.texts)
    found = []
    installed = frozenset(os.path.join(folder, name) for name in files.installed)
    for name in files.settings:
        for path in _walk(os.path.join(folder, name), installed):
            is_text = _is_below(path, texts) and _is_text(files, path)
            if not is_text and not _has_only_permissions(files, path):
                found.append(path)
    for path in (path for top in texts for path in _walk(top)):
        if path not in found and not _is_text(files, path):
            found.append(path)
    return found


def find_nested(files: ProjectFiles, workspace: str, environ: Mapping[str, str]) -> list[str]:
    """List the files in any folder of the workspace that the CLI takes for texts, and that are more than text."""
    if not files.nested:
        return []
    return [path for path in _list_nested(files.nested, workspace, environ, _MOST_MODULES) if not _is_text(files, path)]


def _list_nested(names: tuple[str, ...], top: str, environ: Mapping[str, str], depth: int) -> Iterator[str]:
    """Yield the files below folders of these names; a folder that cannot be searched counts as such a file."""
    from jackline.engine.git import Git
    from jackline.engine.settings import select_inherited_variables

    # A link in the place of the folder, or of the one around it, is listed as a file.
    ends = [end for name in names for end in (os.path.dirname(name), name, f"{name}/**") if end]
    listed = Git(workspace=top, env=select_inherited_variables(environ)).run(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *(f":(glob)**/{end}" for end in ends)
    )
    if listed is None:  # not a repository
        yield from _search_nested(names, top)
        return
    yield from (os.path.join(top, name) for name in listed.split("\0") if name)
    for module in _MODULE.findall(read_text(os.path.join(top, ".gitmodules"))):
        below = os.path.join(top, module)
        if depth and os.path.exists(os.path.join(below, ".git")):
            yield from _list_nested(names, below, environ, depth - 1)


def _search_nested(names: tuple[str, ...], top: str) -> Iterator[str]:
    for count, (folder, _, _) in enumerate(os.walk(top)):
        if count > _MOST_FOLDERS:
            yield top
            return
        for name in names:
            yield from _walk(os.path.join(folder, name))


def find_refused(files: ProjectFiles, folders: tuple[str, ...], left_out: Mapping[str, str]) -> str:
    """Return a file that no switch of the CLI leaves out; empty if there is none."""
    for top in (os.path.join(folder, name) for folder in folders for name in files.refused):
        if found := next(_walk(top), ""):
            return found
    for path, text in left_out.items():
        is_unread = not text and not (os.path.isfile(path) and os.path.getsize(path) == 0)
        if files.refused_words and (is_unread or any(word in text.lower() for word in files.refused_words)):
            return path
    return ""


def read_untrusted(
    files: ProjectFiles, folders: tuple[str, ...], found: list[str], environ: Mapping[str, str]
) -> UntrustedSettings:
    """Read what the launch needs: what is left out, the texts for the model, the user's own configuration."""
    texts: dict[str, str] = {}
    for top in (os.path.join(folder, name) for folder in folders for name in files.texts):
        for path in _walk(top):
            if path not in found:
                texts[path] = read_text(path)
    return UntrustedSettings(
        folders=folders,
        repository=find_repository(folders[0]),
        left_out={path: read_text(path) for path in found},
        texts={path: text for path, text in texts.items() if text},
        user_config=_read_user_config(files, environ),
    )


def hash_settings(files: ProjectFiles, paths: list[str], folder: str) -> str:
    """Hash names and contents, without permission lists that the CLI itself writes. OSError if one is unreadable."""
    whole = sha256()
    for path in paths:
        name = os.fsencode(os.path.relpath(path, folder))
        content = _read_covered(files, path)
        whole.update(b"%d:%s%d:" % (len(name), name, len(content)) + content)
    return whole.hexdigest()


def read_text(path: str) -> str:
    """Return the text of a small regular file; empty if it is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) > _LONGEST_TEXT:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_TEXT)
    except OSError:
        return ""


def _walk(top: str, installed: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the files at or below a path, sorted; a link to a folder counts as a file, which has no text.

    A folder with too many files counts as such a file, too: nothing hides behind the last one that is read.
    """
    if not os.path.lexists(top):
        return
    if not os.path.isdir(top):
        yield top
        return
    found: list[str] = []
    for folder, folders, names in os.walk(top):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(
            name for name in folders if name not in links and os.path.join(folder, name) not in installed
        )
        paths = (os.path.join(folder, name) for name in sorted([*names, *links]))
        found += (path for path in paths if path not in installed)
        if len(found) > _MOST_FILES:
            yield top
            return
    yield from found


def _is_text(files: ProjectFiles, path: str) -> bool:
    """Check whether a file holds only text for the model; what is too long to be read does not count."""
    return files.is_text is is_any_text or (
        os.path.isfile(path) and os.path.getsize(path) <= _LONGEST_TEXT and files.is_text(path, read_text(path))
    )


def _is_below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _has_only_permissions(files: ProjectFiles, path: str) -> bool:
    """Check whether a file holds nothing but the permission lists that the CLI writes: the gate still decides."""
    return path.endswith(files.permission_files) and bool(files.permission_files) and _strip_permissions(path) == {}


def _strip_permissions(path: str) -> object:
    """Return the settings without their permission lists; None if they are not a JSON object."""
    try:
        fields = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    permissions = fields.get("permissions")
    if isinstance(permissions, dict):
        kept = {name: value for name, value in permissions.items() if name not in _PERMISSION_LISTS}
        fields = {name: value for name, value in fields.items() if name != "permissions"}
        fields |= {"permissions": kept} if kept else {}
    return fields


def _read_covered(files: ProjectFiles, path: str) -> bytes:
    if path.endswith(files.permission_files) and files.permission_files:
        fields = _strip_permissions(path)
        if fields is not None:
            return json.dumps(fields, sort_keys=True).encode()
    if not os.path.isfile(path):  # a pipe would block; a link to a folder could lead anywhere
        raise OSError(0, "it is not a regular file, or a folder with too many", path)
    with open(path, "rb") as file:
        return file.read()


def _read_user_config(files: ProjectFiles, environ: Mapping[str, str]) -> str:
    for variable, name in files.user_config:
        if environ.get(variable):
            path = os.path.join(environ[variable], name)
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    return file.read()
            except OSError:
                return ""
    return ""
