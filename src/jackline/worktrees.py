"""Finds the git worktree and the repository around a folder, from files only: git itself is not needed, nor started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.spec import Spec

_LONGEST_LINE = 4096
_GIT = ".git"


def find_worktree(folder: str) -> str:
    """The root of the git worktree around the folder, or the folder itself."""
    here = folder = os.path.realpath(folder)
    while not os.path.exists(os.path.join(here, _GIT)):
        parent = os.path.dirname(here)
        if parent == here:
            return folder
        here = parent
    return here


def find_run_worktree(spec: Spec) -> str:
    """The root of the git worktree in which a run works; its own one may not exist yet."""
    return spec.worktree.path or find_worktree(spec.workspace)


def find_settings_folder(spec: Spec) -> str:
    """The folder whose settings apply to a run: its workspace, or the checkout that its worktree is made from."""
    return spec.workspace if os.path.isdir(spec.workspace) else spec.worktree.source or spec.workspace


def find_repository(folder: str) -> str:
    """The root of the main worktree of the git repository around the folder, or the folder itself.

    All worktrees of a repository have the same one. That of a bare repository is the repository. A submodule is a
    separate repository.
    """
    root = find_worktree(folder)
    git_folder = _read_line(os.path.join(root, _GIT))  # a link to it in a linked worktree, a submodule and some others
    if not git_folder.startswith("gitdir:"):
        return root
    git_folder = os.path.join(root, git_folder.removeprefix("gitdir:").strip())
    common = _read_line(os.path.join(git_folder, "commondir"))  # only a linked worktree has it
    if not common:
        return root
    common = os.path.realpath(os.path.join(git_folder, common))
    if not os.path.isdir(common):
        return root
    if os.path.basename(common) == _GIT:
        return os.path.dirname(common)
    worktree = _read_main_worktree(os.path.join(common, "config"))
    return os.path.realpath(os.path.join(common, worktree)) if worktree else common


def _read_main_worktree(config: str) -> str:
    """The `core.worktree` of a git configuration, which a submodule has; empty if there is none."""
    section = ""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            for line in file:
                text = line.strip()
                if text.startswith("["):
                    section = text.lower()
                name, _, value = text.partition("=")
                if section == "[core]" and name.strip().lower() == "worktree":
                    return value.strip().strip('"')
    except OSError:
        return ""
    return ""


def _read_line(path: str) -> str:
    """The first line of a small file; empty if it is not a readable file."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(_LONGEST_LINE).strip()
    except OSError:
        return ""
