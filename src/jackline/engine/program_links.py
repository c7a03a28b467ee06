"""Follows the links of a program's file for the classifier, which reads no disk itself."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_FOLDERS = 64  # of PATH


def make_resolver(workspace: str) -> Callable[[str], str]:
    """Return a function that resolves an absolute path, or the bare name of a program, as a shell would find it."""
    return partial(_resolve_program, workspace=workspace)


def _resolve_program(name: str, workspace: str) -> str:
    """Resolve a path. A bare name is only searched in the workspace: links of the system lead to other names."""
    if "/" in name:
        return os.path.realpath(name)
    for folder in os.environ.get("PATH", "").split(os.pathsep)[:_MOST_FOLDERS]:
        if os.path.join(folder, "").startswith(os.path.join(workspace, "")):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return os.path.realpath(path)
    return name
