"""Where things lie on this machine: the home's files, and the repository that a workspace belongs to."""

from __future__ import annotations

import os

DATABASE = "state.sqlite"
LOG = "jackline.log"


def database(home: str, configured: str) -> str:
    """The configured database, else the file in the home."""
    return configured or os.path.join(home, DATABASE)


def repository_of(workspace: str) -> str:
    """The root of the git repository around the workspace, or the workspace itself."""
    folder = os.path.realpath(workspace)
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return os.path.realpath(workspace)
        folder = parent
