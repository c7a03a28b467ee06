"""Settings of a hostile project for the real CLIs: no program of theirs runs until a person trusts them; texts load."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jackline.app import own_files, trust
from jackline.app.home import open_home
from jackline.fake_model.script import Reply
from tests.agents.conftest import Play
from tests.agents.stage import Stage

UNAVAILABLE = 13
SERVER = """
import json, pathlib, sys
pathlib.Path(sys.argv[1]).write_text("started")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {
        "initialize": {
            "protocolVersion": asked.get("params", {}).get("protocolVersion", "2024-11-05"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "witness", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "poke", "description": "d", "inputSchema": {"type": "object"}}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"""
SKILL = "---\nname: {name}\ndescription: {text}\n---\nDo it.\n"


class Witnesses:
    """Programs that leave a file when they run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "witnesses"
        self.folder.mkdir()
        (folder / "server.py").write_text(SERVER)
        self._server = str(folder / "server.py")

    def command(self, name: str) -> str:
        return f"touch {self.folder / name}"

    def server(self, name: str) -> list[str]:
        return [sys.executable, self._server, str(self.folder / name)]

    def module(self, name: str) -> str:
        leave = f'import fs from "fs"; fs.writeFileSync("{self.folder / name}", "loaded")'
        return f"{leave}\nexport default async () => ({{}})\n"

    @property
    def seen(self) -> set[str]:
        return set(os.listdir(self.folder))


def put(path: Path, content: str | dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def hooks(witness: Witnesses, name: str, *events: str) -> dict[str, Any]:
    command = {"type": "command", "command": witness.command(name), "name": name}
    return {event: [{"hooks": [command]}] for event in events}


def claude(folder: Path, witness: Witnesses) -> None:
    program, *arguments = witness.server("project-server")
    for name in ("settings.json", "settings.local.json"):
        settings = {
            "hooks": hooks(witness, f"hook-{name}", "SessionStart", "PreToolUse", "Stop"),
            "apiKeyHelper": f"{witness.command(f'helper-{name}')}; echo key",
            "statusLine": {"type": "command", "command": witness.command(f"line-{name}")},
            "env": {"HOSTILE": "yes"},
            "enableAllProjectMcpServers": True,
            "enabledMcpjsonServers": ["witness"],
        }
        put(folder / ".claude" / name, settings)
    put(folder / ".mcp.json", {"mcpServers": {"witness": {"command": program, "args": arguments}}})
    hook = (
        f"hooks:\n  PreToolUse:\n    - hooks:\n        - type: command\n          command: {witness.command('skill')}\n"
    )
    put(folder / ".claude/skills/look/SKILL.md", f"---\nname: look\ndescription: SKILL-TEXT\n{hook}---\nBODY-TEXT\n")
    put(folder / ".claude/agents/helper.md", "---\nname: helper\ndescription: AGENT-TEXT\n---\nHelp.\n")
    put(folder / ".claude/rules/style.md", "RULES-TEXT\n")
    put(folder / "CLAUDE.md", "PROJECT-TEXT\n@AGENTS.md\n")
    put(folder / "CLAUDE.local.md", "LOCAL-TEXT\n")
    put(folder / "AGENTS.md", "IMPORTED-TEXT\n")


def codex(folder: Path, witness: Witnesses) -> None:
    program, *arguments = witness.server("project-server")
    config = [
        f"notify = {json.dumps(witness.command('notify').split())}",
        *("[mcp_servers.witness]", f"command = {json.dumps(program)}", f"args = {json.dumps(arguments)}"),
        *("[shell_environment_policy.set]", 'HOSTILE = "yes"'),
    ]
    put(folder / ".codex/config.toml", "\n".join(config) + "\n")
    put(folder / ".codex/hooks.json", {"hooks": hooks(witness, "hook", "SessionStart", "PreToolUse")})
    put(folder / "AGENTS.md", "PROJECT-TEXT\n")
    put(folder / ".codex/skills/look/SKILL.md", SKILL.format(name="look", text="SKILL-TEXT"))


def node(folder: Path, witness: Witnesses, name: str, text: str, settings: dict[str, Any]) -> None:
    program, *arguments = witness.server("project-server")
    server = {"command": program, "args": arguments, "trust": True}
    put(folder / name / "settings.json", {**settings, "mcpServers": {"witness": server}, "env": {"HOSTILE": "yes"}})
    put(folder / name / ".env", "HOSTILE=yes\n")
    put(folder / text, "PROJECT-TEXT\n")
    put(folder / name / "skills/look/SKILL.md", SKILL.format(name="look", text="SKILL-TEXT"))


def gemini(folder: Path, witness: Witnesses) -> None:
    node(folder, witness, ".gemini", "GEMINI.md", {"hooks": hooks(witness, "hook", "SessionStart", "BeforeTool")})


def qwen(folder: Path, witness: Witnesses) -> None:
    node(folder, witness, ".qwen", "QWEN.md", {"hooks": hooks(witness, "hook", "SessionStart", "PreToolUse")})


def opencode(folder: Path, witness: Witnesses, name: str = "opencode") -> None:
    server = {"witness": {"type": "local", "command": witness.server("project-server"), "enabled": True}}
    put(folder / f"{name}.json", {"mcp": server})
    put(folder / f".{name}/tool/witness.ts", witness.module("tool"))
    put(folder / f".{name}/skill/look/SKILL.md", SKILL.format(name="look", text="SKILL-TEXT"))
    put(folder / "AGENTS.md", "PROJECT-TEXT\n")


def kilo(folder: Path, witness: Witnesses) -> None:
    opencode(folder, witness, "kilo")
    put(folder / ".kilo/plugin/witness.js", witness.module("plugin"))


HOSTILE: dict[str, Callable[[Path, Witnesses], None]] = {
    "claude": claude, "codex": codex, "gemini": gemini, "kilo": kilo, "opencode": opencode, "qwen": qwen,
}  # fmt: skip
TEXTS = {"claude": ("PROJECT-TEXT", "IMPORTED-TEXT", "RULES-TEXT", "LOCAL-TEXT", "SKILL-TEXT", "AGENT-TEXT")}
# What shows that the settings take effect once they are trusted. gemini ignores settings.json in a run even then.
EFFECT = {
    "claude": {"hook-settings.json", "hook-settings.local.json", "helper-settings.local.json", "project-server"},
    "codex": {"project-server"},
    "gemini": set[str](),
    "kilo": {"project-server", "plugin", "tool"},
    "opencode": {"project-server", "tool"},
    "qwen": {"hook", "project-server"},
}
SHOW = Reply(shell="echo HOSTILE=$HOSTILE.")


def hostile(play: Play, agent: str, *replies: Reply) -> tuple[Stage, Witnesses]:
    stage = play(*(replies or (SHOW, Reply(say="done"), SHOW)), otherwise=Reply(say="done"))
    witness = Witnesses(stage.folder)
    HOSTILE[agent](stage.repository, witness)
    return stage, witness


def give_trust(stage: Stage, folder: Path | None = None) -> None:
    """As `jackline trust` at a terminal does, after a person agreed."""
    place = str(folder or stage.repository)
    with open_home(str(stage.home)) as home:
        own_files.trust_project(home, place, trust.hash_project(place))


def notes(stage: Stage, run_id: str) -> list[str]:
    return [event["data"]["files"] for event in stage.events(run_id) if event["kind"] == "gate.settings"]


def test_a_hostile_project_runs_nothing_and_its_texts_load(play: Play, agent: str) -> None:
    stage, witness = hostile(play, agent)
    ended = stage.run("look around", run_id="first")
    assert ended.code == 0, ended
    assert witness.seen == set()
    asked = repr(stage.model.asked)
    assert [text for text in TEXTS.get(agent, ("PROJECT-TEXT", "SKILL-TEXT")) if text not in asked] == []
    assert "HOSTILE=." in asked
    assert len(notes(stage, "first")) == 1
    give_trust(stage)
    assert stage.run("look around", run_id="second").code == 0
    assert witness.seen >= EFFECT[agent]
    assert ("HOSTILE=yes." in repr(stage.model.asked)) is (agent not in {"kilo", "opencode"})
    assert notes(stage, "second") == []


@pytest.mark.parametrize("agent", ["codex", pytest.param("opencode", marks=pytest.mark.full)])
def test_what_cannot_be_left_out_is_refused_until_trusted(play: Play, agent: str) -> None:
    stage, witness = hostile(play, agent)
    name = ".codex/rules/all.rules" if agent == "codex" else ".opencode/plugin/witness.js"
    content = 'prefix_rule(pattern=["ls"], decision="allow")\n' if agent == "codex" else witness.module("plugin")
    put(stage.repository / name, content)
    refused = stage.type("run", "look around", "--agent", agent)
    assert (refused.code, len(refused.err.splitlines())) == (UNAVAILABLE, 1), refused
    assert name in refused.err
    assert "`jackline trust`" in refused.err
    assert (witness.seen, stage.model.asked) == (set(), [])
    give_trust(stage)
    assert stage.run("look around").code == 0
    assert witness.seen >= EFFECT[agent]


def test_settings_around_the_workspace_count_too(play: Play, agent: str) -> None:
    """The CLI looks in the parents up to the root of the repository; one of them is a link."""
    stage, witness = hostile(play, agent)
    below = stage.repository / "packages" / "one"
    below.mkdir(parents=True)
    for name in (".claude", ".codex", ".gemini", ".qwen", ".opencode", ".kilo"):
        if (stage.repository / name).exists():
            shutil.move(stage.repository / name, stage.repository / "moved")
            (stage.repository / name).symlink_to("moved")
    ended = stage.run("look around", "--workspace", str(below))
    assert ended.code == 0, ended
    assert witness.seen == set()
    assert "HOSTILE=yes." not in repr(stage.model.asked)


@pytest.mark.full
@pytest.mark.parametrize("agent", ["claude"])
def test_claude_keeps_the_servers_and_settings_of_the_user(play: Play, agent: str) -> None:
    stage, witness = hostile(play, agent)
    config = stage.folder / "user" / ".claude.json"
    fields = json.loads(config.read_text()) if config.exists() else {}
    program, *arguments = witness.server("user-server")
    local, *others = witness.server("${WHERE}-server")
    fields["mcpServers"] = {"mine": {"command": program, "args": arguments}}
    servers = {"here": {"type": "stdio", "command": local, "args": others, "env": {"KEY": "s3cret-value-of-the-user"}}}
    fields["projects"] = {str(stage.repository): {"mcpServers": servers}}
    put(config, fields)
    put(stage.folder / "user/.claude/settings.json", {"hooks": hooks(witness, "user-hook", "SessionStart")})
    assert stage.run("look around").code == 0
    assert witness.seen == {"user-server", "-server", "user-hook"}
    assert "mcp__here__poke" in repr(stage.model.asked)
    written = [path for path in stage.home.rglob("*") if path.is_file()]
    assert [path for path in written if b"s3cret-value-of-the-user" in path.read_bytes()] == []


@pytest.mark.full
@pytest.mark.parametrize("agent", ["claude"])
def test_a_skill_of_a_hostile_project_brings_no_hook(play: Play, agent: str) -> None:
    use = Reply(call={"tool": "Skill", "input": {"skill": "look"}})
    stage, witness = hostile(play, agent, use, SHOW, Reply(say="done"), use, SHOW)
    assert stage.run("use the skill").code == 0
    assert "BODY-TEXT" in repr(stage.model.asked)
    assert witness.seen == set()
    give_trust(stage)
    assert stage.run("use the skill", run_id="second").code == 0
    assert "skill" in witness.seen


@pytest.mark.full
@pytest.mark.parametrize("agent", ["claude"])
def test_a_skill_that_claude_finds_while_it_works_brings_no_hook(play: Play, agent: str) -> None:
    """It looks for skills beside each file that it reads, even if the project has no settings at all."""
    look = Reply(call={"tool": "Read", "input": {"file_path": "below/note.txt"}})
    use = Reply(call={"tool": "Skill", "input": {"skill": "look"}})
    stage = play(*(look, use, SHOW, Reply(say="done")) * 2, otherwise=Reply(say="done"))
    witness = Witnesses(stage.folder)
    HOSTILE[agent](stage.repository / "below", witness)
    put(stage.repository / "below/note.txt", "nothing\n")
    assert stage.run("look around").code == 0
    assert witness.seen == set()
    give_trust(stage)
    assert stage.run("look around", run_id="second").code == 0
    assert witness.seen == {"skill"}


@pytest.mark.full
@pytest.mark.parametrize("agent", ["claude"])
def test_permissions_that_claude_writes_keep_trust_and_those_of_a_project_restrict(play: Play, agent: str) -> None:
    stage, witness = hostile(play, agent)
    give_trust(stage)
    local = stage.repository / ".claude" / "settings.local.json"
    fields = json.loads(local.read_text())
    put(local, {**fields, "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Bash(echo:*)"]}})
    assert stage.run("look around", run_id="first").code == 0
    assert (notes(stage, "first"), "project-server" in witness.seen) == ([], True)
    put(local, {**fields, "permissions": {"deny": ["Bash(echo:*)"], "additionalDirectories": ["/"]}})
    assert stage.run("look around", run_id="second").code == 0
    assert len(notes(stage, "second")) == 1
    assert [call["state"] for call in stage.show("second")["calls"]] == ["denied"]
