"""Reads the remotes of a repository: their addresses in normal form, and their default branches. It only reads."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.engine.command_runner import start_command_warden
from jackline.engine.git import Git, unbind_git_env
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.policy import git_push_args, own_remotes
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping

ORIGIN = "origin"  # the remote that the host pushes to
_MOST_MS = 60_000
_LONGEST_CONFIG = 1_000_000
_LINE = re.compile(r"(?P<name>[^\t]+)\t(?P<url>.*) \((?:fetch|push)\)(?: \[[^\]]*\])?")


def read_push_addresses(git: Git, remote: str, settings: str) -> list[str]:
    """All addresses that a push to this remote goes to, in normal form; none if one is unknown."""
    if not remote:
        return []
    urls = git.run("remote", "get-url", "--push", "--all", "--", remote)
    listed = (urls or git_push_args.rewrite_push_url(settings, remote)).splitlines()
    top = git.find_top()
    found = [own_remotes.normalize_address(url, top) for url in listed]
    return found if all(found) and not any(" " in one for one in found) else []


def read_remotes(git: Git) -> list[tuple[str, str]]:
    """The names of all remotes with their addresses in normal form, for fetching and pushing."""
    matches = [_LINE.fullmatch(line) for line in (git.run("remote", "-v") or "").splitlines()]
    if not matches:
        return []
    top = git.find_top()
    pairs = [(match["name"], own_remotes.normalize_address(match["url"], top)) for match in matches if match]
    return [(name, address) for name, address in dict.fromkeys(pairs) if address and " " not in address]


def read_own_remotes(workspace: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The addresses of all remotes, each with the default branch of its remote; empty if that is unknown."""
    if not _may_have_remotes(workspace):
        return {}
    try:
        with start_command_warden(_MOST_MS) as warden:
            return _read_branches(Git(workspace=workspace, env=unbind_git_env(environ), warden=warden))
    except (SpawnFailed, WardenLost):
        return {}


def _may_have_remotes(workspace: str) -> bool:
    """Whether the repository may have remotes: asking git takes as long as the rest of a start."""
    git = os.path.join(find_worktree(workspace), ".git")
    if not os.path.isdir(git):
        return os.path.exists(git)  # the configuration of a linked worktree or a submodule is elsewhere
    try:
        with open(os.path.join(git, "config"), "rb") as file:
            text = file.read(_LONGEST_CONFIG).lower()
    except OSError:
        return True
    return len(text) == _LONGEST_CONFIG or b"remote" in text or b"include" in text


def _read_branches(git: Git) -> dict[str, str]:
    remotes = read_remotes(git)
    if not remotes:
        return {}
    listed = git.run("for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/") or ""
    refs = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)
    found: dict[str, str] = {}
    for name, address in remotes:
        branch = _find_default_branch(refs, f"refs/remotes/{name}/")
        found[address] = branch if found.get(address, branch) == branch else ""
    return found


def _find_default_branch(refs: Mapping[str, str], prefix: str) -> str:
    head = refs.get(f"{prefix}HEAD", "")
    if head.startswith(prefix):
        return head.removeprefix(prefix)
    usual = [name for name in ("main", "master") if f"{prefix}{name}" in refs]
    return usual[0] if len(usual) == 1 else ""
