"""Compares the files of a workspace with its last commit, by their content. It changes no repository.

An agent may have written the index and the configuration of its repository: bits of the index that hide a file, another
working tree, and filters of the repository itself do not count. Filters of the person, such as Git LFS, do.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed
from jackline.engine.tree_files import find_repository, list_work_in_gitlinks
from jackline.engine.tree_id import describe_names

if TYPE_CHECKING:
    from jackline.engine.git import Git

_STATUS = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none")
_COUNT = "GIT_CONFIG_COUNT"


def list_uncommitted(git: Git, index: str) -> tuple[str, ...]:
    """The files that differ from the last commit, and the new ones; `index` is the path of a temporary file."""
    found = find_repository(git)
    if found is None:
        raise GitFailed("the workspace is not in a git repository")
    own = found.bind(git)
    apart = own._replace(env={**own.env, **_disable_own_filters(own), "GIT_INDEX_FILE": index})
    _remove_index(index)
    try:
        apart.read("read-tree", "HEAD")
        listed = apart.read("-c", "sparse.expectFilesOutsideOfPatterns=false", *_STATUS)
        hidden = list_work_in_gitlinks(apart, ignored=False)
    finally:
        _remove_index(index)
    return describe_names((*(line[3:] for line in listed.split("\0") if line), *hidden))


def _disable_own_filters(git: Git) -> dict[str, str]:
    """Variables that disable the filters which the configuration of the repository names."""
    words = (git.run("config", "--show-scope", "-z", "--name-only", "--get-regexp", r"^filter\.") or "").split("\0")
    own = [name for scope, name in zip(words[::2], words[1::2], strict=False) if scope in {"local", "worktree"}]
    first = int(git.env.get(_COUNT) or 0)
    env = {_COUNT: str(first + len(own))}
    for number, name in enumerate(own, first):
        env[f"GIT_CONFIG_KEY_{number}"] = name
        env[f"GIT_CONFIG_VALUE_{number}"] = "false" if name.endswith(".required") else ""
    return env


def _remove_index(index: str) -> None:
    for path in (index, f"{index}.lock"):
        with suppress(FileNotFoundError):
            os.unlink(path)
