"""Reads the work of a run as a diff, for its reviewers. It changes nothing and starts no program of a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.review_prompts import MOST_DIFF, DiffText

if TYPE_CHECKING:
    from jackline.engine.git import Git

_MOST_OUTPUT = 8 * 1024 * 1024  # characters; `Git` keeps only the end of a longer one
_QUIET = ("--no-ext-diff", "--no-textconv", "--no-color")


def read_diff(git: Git, old: str, new: str) -> DiffText | None:
    """The differences between two commits or trees, with a summary first if it is long; None if git cannot tell.

    Run it in a repository that has both, such as the copy of a reviewer.
    """
    command = f"git diff {old} {new}"
    patch = git.run("diff-tree", "-r", "-p", "-M", *_QUIET, old, new, "--")
    if patch is None:
        return None
    if len(patch) <= MOST_DIFF:
        return DiffText(text=patch, length=len(patch), command=command)
    summary = git.run("diff-tree", "-r", "--stat=120", "--stat-count=200", "-M", *_QUIET, old, new, "--") or ""
    has_start = len(patch) < _MOST_OUTPUT
    text = f"{summary}\n{patch[:MOST_DIFF] if has_start else ''}"[:MOST_DIFF]
    return DiffText(text=text, length=max(len(patch), len(text) + 1), command=command)


def read_work_diff(git: Git) -> DiffText | None:
    """The work in the copy of a reviewer: its last commit, compared with the one before, if there is one."""
    has_parent = git.run("rev-parse", "-q", "--verify", "HEAD~1") is not None
    empty = "" if has_parent else (git.run("hash-object", "-t", "tree", "/dev/null") or "").strip()
    return read_diff(git, empty or "HEAD~1", "HEAD")
