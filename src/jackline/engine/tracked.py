"""Which files git tracks in a repository: those in its index, so staged ones too. It only reads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.engine.changes import Git

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.process import Warden


def tracked(root: str, paths: Sequence[str], env: Mapping[str, str], warden: Warden | None = None) -> frozenset[str]:
    """Those of the paths (from the root of the repository) that are tracked files; none where git cannot say.

    While git makes a commit, GIT_INDEX_FILE in `env` names what that commit will hold.
    """
    wanted = {path: os.path.normpath(path) for path in paths if path}
    inside = [path for path in wanted.values() if not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir]
    if not inside or not os.path.isdir(root):
        return frozenset()
    listed = Git(root, env, warden).ask("--literal-pathspecs", "ls-files", "-z", "--cached", "--", *inside)
    known = frozenset((listed or "").split("\0"))
    return frozenset(path for path, normal in wanted.items() if normal in known)
