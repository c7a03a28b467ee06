"""Refuses a pull request that could never be opened, before anything is created. It asks no server."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from jackline.engine.git import Git, unbind_git_env
from jackline.engine.github_client import NOT_INSTALLED, find_github_repository
from jackline.engine.key_inputs import read_push_address
from jackline.engine.remotes import ORIGIN
from jackline.errors import UsageError
from jackline.policy import own_remotes
from jackline.policy.git_push_args import remove_credentials
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.request import Request


def find_target(request: Request, workspace: str, branch: str, remotes: Mapping[str, str]) -> tuple[str, str]:
    """The branch to push, of the run's worktree or the one that is checked out, and the address of its remote.

    UsageError if it must not be pushed.
    """
    if not os.path.exists(os.path.join(find_worktree(workspace), ".git")):
        raise UsageError(f"--pr needs a git repository, and {workspace} is not in one")
    git = Git(workspace=workspace, env=unbind_git_env(os.environ))
    url = read_push_address(git, ORIGIN)
    if not url:
        raise UsageError(f"--pr needs a git remote called {ORIGIN}: `git remote add {ORIGIN} URL`")
    address = own_remotes.normalize_address(url, workspace)
    if not find_github_repository(address):
        raise UsageError(f"--pr: {ORIGIN} is {remove_credentials(url)}, which is not a repository on GitHub")
    if shutil.which("gh") is None:
        raise UsageError(f"--pr: {NOT_INSTALLED}")
    branch = branch or (git.run("symbolic-ref", "-q", "--short", "HEAD") or "").strip()
    if not branch:
        raise UsageError("--pr: no branch is checked out: switch to one, or add --worktree")
    if branch == remotes.get(address):
        raise UsageError(f"--pr: {branch} is the default branch of {ORIGIN}, which is never pushed to: add --worktree")
    if branch == request.pr_base:
        raise UsageError(f"--pr: {branch} cannot be merged into itself: add --worktree, or name another --pr-base")
    return branch, address
