"""Reads the remotes of a repository: their addresses in normal form, and their default branches. It only reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy import git_push_args, own_remotes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.engine.git import Git

_LINE = re.compile(r"(?P<name>[^\t]+)\t(?P<url>.*) \((?:fetch|push)\)(?: \[[^\]]*\])?")


def read_push_addresses(git: Git, remote: str, settings: str) -> list[str]:
    """All addresses that a push to this remote goes to, in normal form; none if one is unknown."""
    if not remote:
        return []
    urls = git.run("remote", "get-url", "--push", "--all", "--", remote)
    listed = (urls or git_push_args.rewrite_push_url(settings, remote)).splitlines()
    top = (git.run("rev-parse", "--show-toplevel") or "").rstrip("\n")
    found = [own_remotes.normalize_address(url, top) for url in listed]
    return found if all(found) and not any(" " in one for one in found) else []


def read_remotes(git: Git) -> list[tuple[str, str]]:
    """The names of all remotes with their addresses in normal form, for fetching and pushing."""
    matches = [_LINE.fullmatch(line) for line in (git.run("remote", "-v") or "").splitlines()]
    if not matches:
        return []
    top = (git.run("rev-parse", "--show-toplevel") or "").rstrip("\n")
    pairs = [(match["name"], own_remotes.normalize_address(match["url"], top)) for match in matches if match]
    return [(name, address) for name, address in dict.fromkeys(pairs) if address and " " not in address]


def read_own_remotes(git: Git) -> dict[str, str]:
    """The addresses of all remotes, each with the default branch of its remote; empty if that is unknown."""
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
