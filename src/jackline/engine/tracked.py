"""Which files git tracks in a repository: those in its index, staged ones included. It only reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.engine.changes import Git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.process import Warden


_INDEX = "GIT_INDEX_FILE"
_DELETED = "R "


def tracked(
    root: str, paths: Sequence[str], env: Mapping[str, str], warden: Warden | None = None
) -> frozenset[str] | None:
    """The given paths, relative to the root of the repository, that are tracked files; None if git cannot tell.

    Deleted files do not count. During a commit GIT_INDEX_FILE in `env` names the index of that commit, which counts
    whatever is on the disk.
    """
    wanted = {path: os.path.normpath(path) for path in paths if path}
    inside = [path for path in wanted.values() if not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir]
    if not inside or not os.path.isdir(root):
        return frozenset()
    words = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", *(() if env.get(_INDEX) else ("--deleted",)))
    listed = Git(root, env, warden).ask(*words, "--", *inside)
    if listed is None:
        return None if os.path.exists(os.path.join(root, ".git")) else frozenset()
    lines = listed.split("\0")
    known = {line[2:] for line in lines} - {line[2:] for line in lines if line.startswith(_DELETED)}
    return frozenset(path for path, normal in wanted.items() if normal in known)
