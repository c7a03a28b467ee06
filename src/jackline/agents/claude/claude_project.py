"""Starts Claude Code without the settings of an untrusted project, but with its texts and the user's own servers. Pure.

With `--setting-sources user` the CLI takes nothing from a project, neither settings nor texts; an additional folder
gives it CLAUDE.md and the rules again, and a plugin the skills, subagents and commands. Observed with the real one; see
tests/agents/test_project_settings.py.
"""

from __future__ import annotations

import json
import os.path
import sys
from typing import TYPE_CHECKING, Any

from jackline.agents.cli_args import HELPER
from jackline.agents.front_matter import filter_head, has_only_text
from jackline.agents.json_fields import as_dict, as_list, as_str, parse_object
from jackline.domain.adapter import ProjectFiles
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.adapter import TurnRequest, UntrustedSettings

_PARTS = ("skills", "agents", "commands")  # the same names in a plugin
_LOCAL_TEXT = "CLAUDE.local.md"
_ALWAYS_READ = ("CLAUDE.md", ".claude/CLAUDE.md", ".claude/rules")
_LOCAL_SETTINGS = ".claude/settings.local.json"
PROJECT_FILES = ProjectFiles(
    settings=(
        ".claude/settings.json", _LOCAL_SETTINGS, ".mcp.json", ".claude/hooks", ".claude/workflows",
        ".claude/routines", ".claude/scheduled_tasks.json", ".claude/launch.json",
    ),
    texts=(*_ALWAYS_READ, _LOCAL_TEXT, *(f".claude/{part}" for part in _PARTS)),
    is_text=has_only_text,
    nested=(".claude/skills",),
    permission_files=(f"/{_LOCAL_SETTINGS}",),
    user_config=(("CLAUDE_CONFIG_DIR", ".claude.json"), ("HOME", ".claude.json")),
)  # fmt: skip
# Restrictions of the project stay: they can only make the CLI refuse more.
_RESTRICTIONS = ("deny", "ask")
_HELPER_PROGRAM = "claude-server"


class ProjectLaunch(NamedTuple):
    """What is added to the launch."""

    arguments: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    servers: Mapping[str, Any]  # the user's own servers for this project
    permissions: Mapping[str, list[str]]


def build_project_launch(request: TurnRequest, untrusted: UntrustedSettings) -> ProjectLaunch:
    """Build the arguments and files that replace the project's settings."""
    top = os.path.join(request.folder, f"claude-project-{request.turn}")
    folders = [folder for folder in untrusted.folders if _has_text(untrusted, folder)]
    files: dict[str, bytes] = {}
    for number, folder in enumerate(untrusted.folders):
        local = untrusted.texts.get(os.path.join(folder, _LOCAL_TEXT))
        if local:
            files[f"{top}/.claude/rules/local-{number}.md"] = _encode(local)
    if files:
        folders.append(top)
    plugin = os.path.join(top, "plugin")
    parts = dict(_build_plugin(untrusted, plugin))
    if parts:
        manifest = {"name": "project", "version": "1.0.0", "description": "Skills of this project"}
        files |= {**parts, f"{plugin}/.claude-plugin/plugin.json": json.dumps(manifest).encode()}
    return ProjectLaunch(
        arguments=(
            *("--setting-sources", "user"),
            *(f"--add-dir={folder}" for folder in folders),
            *(("--plugin-dir-no-mcp", plugin) if parts else ()),
        ),
        env={"CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1"},
        files=files,
        servers=_find_servers(request, untrusted),
        permissions={name: rules for name in _RESTRICTIONS if (rules := _find_rules(untrusted, name))},
    )


def _has_text(untrusted: UntrustedSettings, folder: str) -> bool:
    tops = [os.path.join(folder, name) for name in _ALWAYS_READ]
    return any(path == top or path.startswith(f"{top}/") for path in untrusted.texts for top in tops)


def _build_plugin(untrusted: UntrustedSettings, plugin: str) -> Iterator[tuple[str, bytes]]:
    """Yield the Markdown files of skills, subagents and commands; the folder nearest to the workspace wins."""
    for folder in reversed(untrusted.folders):
        for part in _PARTS:
            top = os.path.join(folder, ".claude", part)
            for path, text in {**untrusted.texts, **untrusted.left_out}.items():
                if path.startswith(f"{top}/") and path.endswith(".md"):
                    more = f"\n\nThe files of this skill are in {os.path.dirname(path)}.\n" if part == "skills" else ""
                    yield f"{plugin}/{part}{path.removeprefix(top)}", _encode(filter_head(text) + more)


def _find_rules(untrusted: UntrustedSettings, name: str) -> list[str]:
    found: list[str] = []
    for path, text in untrusted.left_out.items():
        if path.endswith(("/.claude/settings.json", f"/{_LOCAL_SETTINGS}")):
            permissions = as_dict((parse_object(text.encode("utf-8", "replace")) or {}).get("permissions"))
            found += [rule for rule in map(as_str, as_list(permissions.get(name))) if rule]
    return found


def _find_servers(request: TurnRequest, untrusted: UntrustedSettings) -> dict[str, Any]:
    """The servers that the user added for this project alone, which `--setting-sources user` leaves out.

    Their keys stay in the user's file: a helper reads it when the CLI starts the server.
    """
    projects = as_dict((parse_object(untrusted.user_config.encode("utf-8", "replace")) or {}).get("projects"))
    folder = request.environ.get("CLAUDE_CONFIG_DIR", "")
    servers: dict[str, Any] = {}
    for place in (*reversed(untrusted.folders), untrusted.repository, request.workspace):
        project = as_dict(projects.get(place))
        for name, server in as_dict(project.get("mcpServers")).items():
            fields = as_dict(server)
            helper = [sys.executable, "-IS", HELPER, _HELPER_PROGRAM, folder, place, name]
            if name in as_list(project.get("disabledMcpServers")) or not fields:
                continue
            if fields.get("url"):
                import shlex

                kept = {key: value for key, value in fields.items() if key in {"type", "url", "oauth", "timeout"}}
                servers[name] = {**kept, "headersHelper": shlex.join(helper)}
            else:
                servers[name] = {"type": "stdio", "command": helper[0], "args": helper[1:]}
    return servers


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
