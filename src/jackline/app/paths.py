"""Paths on this machine: the home's files, the user's folders, the project's file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

DATABASE_FILE = "state.sqlite"
LOG_FILE = "jackline.log"
PROJECT_FILE = "jackline.toml"
SERVICES_FOLDER = "services"  # of a home: the locks of its running services


def find_database(home: str, configured: str) -> str:
    """The configured database, else the file in the home."""
    return configured or os.path.join(home, DATABASE_FILE)


def find_config_folder(environ: Mapping[str, str]) -> str:
    """The folder of the user's own settings and tasks."""
    return _build_xdg_path(environ, "XDG_CONFIG_HOME", ".config")


def find_cache_folder(environ: Mapping[str, str]) -> str:
    """The folder of files that can be fetched again."""
    return _build_xdg_path(environ, "XDG_CACHE_HOME", ".cache")


def find_state_folder(environ: Mapping[str, str]) -> str:
    """The default home."""
    return _build_xdg_path(environ, "XDG_STATE_HOME", os.path.join(".local", "state"))


def find_worktrees_folder(environ: Mapping[str, str]) -> str:
    """The default folder of the worktrees that jackline makes for runs."""
    return os.path.join(_build_xdg_path(environ, "XDG_DATA_HOME", os.path.join(".local", "share")), "worktrees")


def find_user_home(environ: Mapping[str, str]) -> str:
    """HOME; if it is empty or not set, the home that the system knows. Never the root of the disk."""
    if environ.get("HOME"):
        return environ["HOME"]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise UsageError("HOME is not set, and the system knows no home for this user: set HOME") from None


def _build_xdg_path(environ: Mapping[str, str], variable: str, default: str) -> str:
    return os.path.join(environ.get(variable) or os.path.join(find_user_home(environ), default), "jackline")


def find_project_file(folder: str) -> str:
    """The nearest jackline.toml from the folder upwards, not beyond the repository's root; it may not exist."""
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        parent = os.path.dirname(folder)
        if os.path.exists(path) or os.path.exists(os.path.join(folder, ".git")) or parent == folder:
            return path
        folder = parent


def refuse_links(root: str, path: str) -> None:
    """UsageError if the path, or a folder on the way to it inside the root, is a link: it may lead anywhere."""
    while path != root and len(path) > len(root):
        if os.path.islink(path):
            raise UsageError(
                f"{path} is a link, and jackline does not write through links: replace it with a file or folder"
            )
        path = os.path.dirname(path)
