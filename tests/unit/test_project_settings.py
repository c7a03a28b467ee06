"""Which files of a project are settings for an agent's CLI, and what of them trust covers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from jackline.agents.claude.claude_adapter import DECLARATION as CLAUDE
from jackline.agents.codex import DECLARATION as CODEX
from jackline.agents.front_matter import filter_head, has_only_text
from jackline.agents.kilo import DECLARATION as KILO
from jackline.agents.opencode import DECLARATION as OPENCODE
from jackline.agents.qwen import DECLARATION as QWEN
from jackline.app import own_files, project_settings, state_files, trust
from jackline.app.home import open_home
from jackline.errors import AgentUnavailable

ENVIRON = {"HOME": "/nobody"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def put(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def left_out(home: Path, project: Path, declaration: object = CLAUDE) -> list[str]:
    found = trust.read_untrusted_settings(str(home), "", declaration, str(project), ENVIRON)  # type: ignore[arg-type]
    return [] if found is None else [os.path.relpath(path, project) for path in found.left_out]


def give_trust(home: Path, project: Path) -> None:
    with open_home(str(home)) as opened:
        own_files.trust_project(opened, str(project), trust.hash_project(str(project)))


def test_trust_given_before_settings_were_covered_covers_the_rest(tmp_path: Path, project: Path) -> None:
    put(project / "jackline.toml", 'agent = "claude"\n')
    put(project / ".claude/settings.json", {"env": {"A": "b"}})
    digest = trust.hash_project(str(project)).project
    home = tmp_path / "home"
    home.mkdir()
    state_files.update_entries(str(home / "trust.json"), lambda _: {str(project): {"digest": digest, "at": 1}})
    assert trust.is_trusted(str(home), "", str(project))
    assert left_out(home, project) == [".claude/settings.json"]
    status = trust.read_trust_status(str(home), "", str(project))
    assert (status.trusted, status.settings) == (True, (".claude/settings.json",))
    give_trust(home, project)
    assert left_out(home, project) == []
    assert trust.read_trust_status(str(home), "", str(project)).settings == ()


def test_a_change_for_one_agent_ends_trust_for_that_agent(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    put(project / ".claude/settings.json", {"env": {}})
    put(project / ".codex/config.toml", "")
    give_trust(home, project)
    assert (left_out(home, project), left_out(home, project, CODEX)) == ([], [])
    put(project / ".codex/hooks.json", {})
    assert left_out(home, project) == []
    assert left_out(home, project, CODEX) == [".codex/config.toml", ".codex/hooks.json"]
    assert trust.is_trusted(str(home), "", str(project))


def test_permission_lists_that_claude_writes_do_not_count(tmp_path: Path, project: Path) -> None:
    home, local = tmp_path / "home", project / ".claude/settings.local.json"
    put(project / ".claude/settings.json", {"env": {}})
    give_trust(home, project)
    put(local, {"permissions": {"allow": ["Bash"], "deny": [], "ask": []}})
    assert left_out(home, project) == []
    changes: tuple[object, ...] = (
        {"permissions": {"defaultMode": "bypassPermissions"}},
        {"enabledMcpjsonServers": ["x"]},
        [],
        "{",
    )
    for more in changes:
        put(local, more)
        assert left_out(home, project) == [".claude/settings.json", ".claude/settings.local.json"], more


def test_the_parents_up_to_the_root_of_the_worktree_count_and_the_home_does_not(project: Path) -> None:
    below = project / "a" / "b"
    below.mkdir(parents=True)
    assert project_settings.list_folders(str(below), ENVIRON) == (str(below), str(project / "a"), str(project))
    outside = {"HOME": str(project)}
    assert project_settings.list_folders(str(below), outside) == (str(below), str(project / "a"))
    (project / ".git").rmdir()
    assert project_settings.list_folders(str(below), outside) == (str(below), str(project / "a"))
    assert project_settings.list_folders(str(below), ENVIRON)[-1] == "/"


def test_links_pipes_and_long_files_are_settings_that_cannot_be_trusted_or_are_hashed(
    tmp_path: Path, project: Path
) -> None:
    put(tmp_path / "elsewhere.json", {"env": {"A": "b"}})
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").symlink_to(tmp_path / "elsewhere.json")
    home = tmp_path / "home"
    give_trust(home, project)
    assert left_out(home, project) == []
    put(tmp_path / "elsewhere.json", {"env": {"A": "c"}})
    assert left_out(home, project) == [".claude/settings.json"]
    long = "---\nname: x\n---\n" + "x" * 300_000
    put(project / ".claude/skills/long/SKILL.md", long)
    assert ".claude/skills/long/SKILL.md" in left_out(home, project)
    (project / ".qwen").mkdir()
    os.mkfifo(project / ".qwen/settings.json")
    assert left_out(home, project, QWEN) == [".qwen/settings.json"]


def test_nothing_hides_behind_many_files_or_a_name_that_a_cli_installs(tmp_path: Path, project: Path) -> None:
    head = "---\nname: x\nhooks: {}\n---\n"
    put(project / ".claude/skills/node_modules/SKILL.md", head)
    assert left_out(tmp_path, project) == [".claude/skills/node_modules/SKILL.md"]
    for number in range(project_settings._MOST_FILES + 1):
        put(project / f".opencode/a/{number}", "")
        put(project / f".claude/skills/a/{number}", "")
    assert left_out(tmp_path, project) == [".claude/skills"]
    put(project / ".opencode/plugin/x.js", "")
    with pytest.raises(AgentUnavailable, match=r"\.opencode/plugin/x\.js"):
        left_out(tmp_path, project, OPENCODE)
    put(project / ".kilo/node_modules/x.js", "")
    assert ".kilo/node_modules/x.js" not in left_out(tmp_path, project, KILO)


@pytest.mark.parametrize("in_git", [True, False])
def test_skills_with_hooks_in_any_folder_count(tmp_path: Path, project: Path, in_git: bool) -> None:
    (project / ".git").rmdir()
    if in_git:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        put(project / ".gitignore", "build\n")
        put(project / "build/.claude/skills/x/SKILL.md", "---\nhooks: {}\n---\n")
    put(project / "a/.claude/skills/plain/SKILL.md", "---\nname: plain\n---\n")
    assert left_out(tmp_path, project) == []
    put(project / "a/b/.claude/skills/x/SKILL.md", "---\nhooks: {}\n---\n")
    assert left_out(tmp_path, project) == ["a/b/.claude/skills/x/SKILL.md"]
    if in_git:
        (project / "c").mkdir()
        (project / "c/.claude").symlink_to(project / "a/b/.claude")
        assert "c/.claude" in left_out(tmp_path, project)
        (project / "c/.claude").unlink()
    give_trust(tmp_path / "home", project)
    assert left_out(tmp_path / "home", project) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".opencode/plugin/x.js", ""),
        (".opencode/plugins/deep/x.ts", ""),
        ("opencode.json", '{"plugin": ["x"]}'),
        ("opencode.jsonc", '{"pl\\u0075gin": ["x"]}'),
        (".opencode/opencode.json", '{"{file:name}": ["x"]}'),
        ("opencode.json", '{"plugin": ["x"]}' + " " * 300_000),
    ],
)
def test_a_plugin_of_opencode_is_refused(tmp_path: Path, project: Path, name: str, text: str) -> None:
    put(project / name, text)
    with pytest.raises(AgentUnavailable, match="jackline trust"):
        left_out(tmp_path, project, OPENCODE)
    give_trust(tmp_path / "home", project)
    assert left_out(tmp_path / "home", project, OPENCODE) == []


@pytest.mark.parametrize(
    "head",
    [
        "hooks:\n  PreToolUse: []", '"hooks": {}', '"ho\\x6fks": {}', "? hooks\n: {}", "{name: x, hooks: {}}",
        "name: x\n<<: {hooks: {}}", "  name: x\n  hooks: {}", "mcpServers:\n  x: {}", "name: x\rhooks: {}",
        "name: x\x85hooks: {}",
    ],
)  # fmt: skip
def test_a_head_that_could_start_a_program_is_not_text(head: str) -> None:
    text = f"---\n{head}\n---\nbody\n"
    assert not has_only_text("SKILL.md", text)
    kept = filter_head(text)
    assert has_only_text("SKILL.md", kept)
    assert "ooks" not in kept.partition("\n---\n")[0]
    assert kept.endswith("---\nbody\n")


@pytest.mark.parametrize(
    "text",
    ["no head", "---\nname: x\ndescription: >-\n  long\n  text\ntools:\n- Read\n# note\n---\nbody: hooks:\n", ""],
)
def test_a_usual_head_is_text(text: str) -> None:
    assert has_only_text("SKILL.md", text)
    assert has_only_text("data.json", "---\nhooks: {}\n---\n")
    assert filter_head(text) == text


def test_settings_that_the_command_did_not_trust_are_void(tmp_path: Path, project: Path) -> None:
    """An agent could write trust.json; the record of the command is compared with it."""
    home = tmp_path / "home"
    put(project / ".claude/settings.json", {"env": {}})
    give_trust(home, project)
    assert left_out(home, project) == []
    put(project / ".claude/settings.json", {"env": {"A": "b"}})
    digests = trust.hash_project(str(project))
    forged: state_files.Entry = {"digest": digests.project, "at": 1, "settings": digests.settings}
    state_files.update_entries(str(home / "trust.json"), lambda _: {str(project): forged})
    assert left_out(home, project) == [".claude/settings.json"]
