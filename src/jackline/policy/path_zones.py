"""Finds the zone of a path: inside the workspace, temporary, outside, or unknown. Pure.

Symbolic links are not followed, because nothing here reads the disk. Git hooks, settings of agents and editor tasks
have a separate zone: they start programs later without a gate, perhaps before a person has read the diff.
"""

from __future__ import annotations

import posixpath
import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.shell.model import Word


class PathZone(Enum):
    """Where a path lies, relative to the workspace."""

    INSIDE = "inside the workspace"
    ROOT = "the workspace itself or its history"
    HOOKS = "a file that starts programs later"
    HOOKS_FOLDER = "a folder with files that start programs later"
    TEMPORARY = "in a temporary folder"
    OUTSIDE = "outside the workspace"
    UNKNOWN = "at a path that is only known at run time"


_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp")  # noqa: S108 - compared, never opened
DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/full"})
_HERE = re.compile(r"^(?:\$PWD|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+)(?=/|$)")
_TEMPORARY_NAME = re.compile(r"^(?:\$TMPDIR|\$\{TMPDIR(?::?-/tmp/?)?\})(?=/|$)")
_NEW_NAME = re.compile(r"^(?:\$\(mktemp(?: [^()$`]*)?\)|`mktemp(?: [^`$]*)?`)(?=/|$)")
_RUN_TIME = re.compile(r"[$`*?\[{]")
_UPWARD = re.compile(r"(?:^|[/{,])\.\.?(?:[/*?\[},]|$)|[{,][/~]")
# Settings of agents. Skills, commands and other texts for a model are not among them.
_AGENT_SETTINGS = (
    r"\.claude/(?:settings[^/]*\.json$|(?:hooks|workflows|routines|plugins)(?:/|$)|(?:scheduled_tasks|launch)\.json$)",
    r"\.mcp\.json$",
    r"\.codex/(?!(?:skills|prompts)(?:/|$))",
    r"\.(?:gemini|qwen)/(?!(?:skills|commands)(?:/|$)|[A-Z]+\.md$)",
    r"\.(?:opencode|kilo|kilocode)/(?!(?:skills?|commands?|rules)(?:/|$))",
    r"(?:opencode|kilo|tui)\.jsonc?$",
    r"\.cursor/(?:mcp|hooks)\.json$",
)
_OTHER_STARTUP_FILES = (
    r"\.envrc$",
    r"\.husky/",
    r"\.vscode/(?:tasks|settings|launch|mcp)\.json$",
    r"[^/]+\.code-workspace$",
    r"\.idea/(?:workspace\.xml$|runConfigurations(?:/|$))",
    r"\.run/[^/]+\.run\.xml$",
    r"\.zed/(?:tasks|settings|debug)\.json$",
    r"\.devcontainer(?:\.json$|/)",
    r"\.(?:exrc|nvimrc|nvim\.lua|dir-locals\.el)$",
)
_STARTUP_FOLDERS = (
    r"\.(?:claude|codex|gemini|qwen|opencode|kilo|kilocode|cursor|husky|vscode|idea|run|zed|devcontainer)"
)
# A file that starts programs; a folder that also has others; a shell pattern. macOS ignores the case of names.
_STARTUP_FILE = re.compile(rf"(?:^|/)(?:{'|'.join((*_AGENT_SETTINGS, *_OTHER_STARTUP_FILES))})", re.IGNORECASE)
_STARTUP_FOLDER = re.compile(rf"(?:^|/){_STARTUP_FOLDERS}$", re.IGNORECASE)
_STARTUP_PATTERN = re.compile(
    rf"(?:^|[/{{,]){_STARTUP_FOLDERS}(?:[/}},]|$)|\.mcp\.json|\.envrc|opencode\.json", re.IGNORECASE
)


def find_zone(word: Word, folder: str | None, workspace: str) -> PathZone:
    """Return the zone of a path; relative paths start at `folder`, which is None if unknown."""
    if word.exact:
        return _find_exact_zone(word.text, folder, workspace)
    text = _HERE.sub(".", word.text)
    if text.startswith(("~", "$HOME", "${HOME}")):
        return PathZone.OUTSIDE
    temporary = _NEW_NAME.sub("/new", _TEMPORARY_NAME.sub("", text))
    if temporary != text:
        return _find_temporary_zone(temporary) if not _UPWARD.search(temporary) else PathZone.UNKNOWN
    found = _RUN_TIME.search(text)
    if found is None:  # without shell syntax, it is a placeholder that another program fills in
        return _find_exact_zone(text, folder, workspace) if text != word.text else PathZone.UNKNOWN
    if "{}" in text:
        return PathZone.UNKNOWN
    return _find_prefix_zone(text[: found.start()], text[found.start() :], folder, workspace)


def resolve_path(text: str, folder: str) -> str:
    """Return the normalized absolute path."""
    return posixpath.normpath("/" + posixpath.join(folder, text).lstrip("/"))


def is_beside(word: Word, folder: str | None, workspace: str) -> bool:
    """Check for a path next to the workspace or below such a folder; hidden ones hold settings of other programs."""
    if not word.exact or (folder is None and not word.text.startswith("/")):
        return False
    root = resolve_path(workspace, "/")
    around = posixpath.dirname(root).rstrip("/") + "/"
    path = resolve_path(word.text, folder or "/")
    return path.startswith(around) and not any(name.startswith(".") for name in path[len(around) :].split("/"))


def opens_connection(word: Word) -> bool:
    """Check whether bash would open a network connection, which works in both directions."""
    return word.text.startswith(("/dev/tcp/", "/dev/udp/"))


def _find_exact_zone(text: str, folder: str | None, workspace: str) -> PathZone:
    if folder is None and not text.startswith("/"):
        return PathZone.UNKNOWN
    whole, root = resolve_path(text, folder or "/"), resolve_path(workspace, "/")
    if whole in {root, posixpath.join(root, ".git")}:
        return PathZone.ROOT
    if _is_below(whole, root):
        return _find_inside_zone(whole[len(root.rstrip("/")) + 1 :])
    if whole in DEVICES or _is_below(whole, "/dev/fd"):
        return PathZone.TEMPORARY
    return PathZone.TEMPORARY if any(_is_below(whole, top) for top in _TEMPORARY) else PathZone.OUTSIDE


def _find_inside_zone(path: str) -> PathZone:
    """Return the zone of a path relative to the workspace."""
    if _STARTUP_FILE.search(path) is not None or _is_git_file(path.lower().split("/")):
        return PathZone.HOOKS
    return PathZone.HOOKS_FOLDER if _STARTUP_FOLDER.search(path) is not None else PathZone.INSIDE


def _is_git_file(parts: list[str]) -> bool:
    """Check for hooks and settings of git: of the workspace, a submodule, a linked worktree, or a folder inside."""
    if ".git" not in parts:
        return False
    _, *rest = parts[parts.index(".git") :]
    if not rest:
        return len(parts) > 1  # a file in its place names another repository
    if rest[0] in {"modules", "worktrees"}:
        return "hooks" in rest or rest[-1].startswith("config")
    return rest[0] == "hooks" or rest[0].startswith("config")


def _find_prefix_zone(known: str, rest: str, folder: str | None, workspace: str) -> PathZone:
    """Return the zone of a path with a known prefix; the rest may only lead further down."""
    head, slash, begun = known.rpartition("/")
    if _UPWARD.search(begun + rest) or not (known or rest[0] not in "$`"):
        return PathZone.UNKNOWN
    if ".git" in rest and re.search(r"[{,]\.git[,}/]", rest):
        return PathZone.ROOT
    above = _find_exact_zone(head + slash or ".", folder, workspace)
    if above is PathZone.HOOKS_FOLDER:
        return PathZone.HOOKS
    if above in {PathZone.ROOT, PathZone.INSIDE}:
        return PathZone.HOOKS if _STARTUP_PATTERN.search(begun + rest) is not None else PathZone.INSIDE
    if above is PathZone.OUTSIDE and resolve_path(head + slash, folder or "/") in _TEMPORARY:
        return _find_temporary_zone(f"/{begun}{rest}")
    return above


def _find_temporary_zone(rest: str) -> PathZone:
    """Return TEMPORARY for a path that starts with a name; a pattern could match files of other users."""
    named = rest.lstrip("/")
    return PathZone.TEMPORARY if named[:1] not in {"", "*", "?", "$", "`", "[", "{"} else PathZone.UNKNOWN


def _is_below(path: str, top: str) -> bool:
    return path.startswith(top.rstrip("/") + "/")
