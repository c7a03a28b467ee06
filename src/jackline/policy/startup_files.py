"""Files of a workspace that start programs later, without a gate: git hooks, settings of agents, editor tasks. Pure.

A diff may show them, and nobody reads it before the next `git commit`, the next run or the next start of an editor.
"""

from __future__ import annotations

import re

# Settings of agents. Skills, commands and other texts for a model are not among them.
_AGENTS = (
    r"\.claude/(?:settings[^/]*\.json$|(?:hooks|workflows|routines|plugins)(?:/|$)|(?:scheduled_tasks|launch)\.json$)",
    r"\.mcp\.json$",
    r"\.codex/(?!(?:skills|prompts)(?:/|$))",
    r"\.(?:gemini|qwen)/(?!(?:skills|commands)(?:/|$)|[A-Z]+\.md$)",
    r"\.(?:opencode|kilo|kilocode)/(?!(?:skills?|commands?|rules)(?:/|$))",
    r"(?:opencode|kilo|tui)\.jsonc?$",
    r"\.cursor/(?:mcp|hooks)\.json$",
)
_OTHERS = (
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
_FOLDERS = r"\.(?:claude|codex|gemini|qwen|opencode|kilo|kilocode|cursor|husky|vscode|idea|run|zed|devcontainer)"
# macOS ignores the case of names.
_FILE = re.compile(rf"(?:^|/)(?:{'|'.join((*_AGENTS, *_OTHERS))})", re.IGNORECASE)
_FOLDER = re.compile(rf"(?:^|/){_FOLDERS}$", re.IGNORECASE)
_IN_PATTERN = re.compile(rf"(?:^|[/{{,]){_FOLDERS}(?:[/}},]|$)|\.mcp\.json|\.envrc|opencode\.json", re.IGNORECASE)


def starts_programs(path: str) -> bool:
    """Check whether a path, relative to the workspace, is such a file, or a folder of nothing else."""
    return _FILE.search(path) is not None or _is_git_file(path.lower().split("/"))


def holds_startup_files(path: str) -> bool:
    """Check whether a path, relative to the workspace, is a folder in which such files lie beside others."""
    return _FOLDER.search(path) is not None


def names_startup_files(pattern: str) -> bool:
    """Check whether a part of a path that the shell expands names such files."""
    return _IN_PATTERN.search(pattern) is not None


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
