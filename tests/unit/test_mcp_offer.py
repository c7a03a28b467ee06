"""Whether agents get jackline's own MCP server, and how each adapter hands it over."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jackline.agents import registry
from jackline.app import config
from jackline.app.agent_env import build_mcp_argv
from jackline.app.config import Config
from jackline.domain.adapter import Launch, McpServer
from jackline.domain.spec import Spec
from jackline.engine.launch import build_mcp_server
from jackline.engine.turn_plan import LaunchContext, build_warnings
from jackline.features.journal import journal_events
from jackline.features.mcp import relay
from tests.unit.test_adapters_all import FOLDER, launched

WORDS = (sys.executable, "-I", "-S", relay.__file__)
SERVER = McpServer(("/usr/bin/python3", "-m", "jackline", "mcp"), {"JACKLINE_HOME": "/h", "JACKLINE_RUN": 'r"1'})
TAKERS = ("acp", "claude", "codex", "gemini", "kilo", "opencode", "qwen")


def loaded(tmp_path: Path, text: str = "", **environ: str) -> Config:
    folder = tmp_path / ".config" / "jackline"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(text)
    return config.load_config({"HOME": str(tmp_path), **environ}, str(tmp_path))


# --- whether


def test_it_is_offered_where_the_sdk_is_installed(tmp_path: Path) -> None:
    assert build_mcp_argv(loaded(tmp_path), {}) == (WORDS, "")


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    assert build_mcp_argv(loaded(tmp_path, 'mcp = "off"'), {}) == ((), "")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://ada@db/jackline", ""),
        ("postgresql://ada:secret@db/jackline", "contains a password"),
        ("postgresql://db/jackline?password=secret", "contains a password"),
        ("/var/lib/jackline.sqlite", ""),
    ],
)
def test_a_password_that_was_told_to_us_alone_is_not_handed_over(tmp_path: Path, address: str, words: str) -> None:
    argv, missing = build_mcp_argv(loaded(tmp_path, JACKLINE_DATABASE=address), {})
    assert (words in missing) is True
    assert bool(argv) is not bool(missing)
    assert "secret" not in missing


def test_an_address_in_the_users_own_file_is_found_by_the_server_itself(tmp_path: Path) -> None:
    settings = loaded(tmp_path, 'database = "postgresql://ada:secret@db/jackline"')
    assert build_mcp_argv(settings, {}) == (WORDS, "")


def test_a_database_that_only_our_variables_find_is_not_found_by_a_server(tmp_path: Path) -> None:
    settings = loaded(tmp_path, 'database = "postgresql://db/jackline"')
    argv, missing = build_mcp_argv(settings, {"PGPASSWORD": "secret"})
    assert (argv, "PGPASSWORD" in missing, "secret" in missing) == ((), True, False)
    assert build_mcp_argv(loaded(tmp_path / "other"), {"PGPASSWORD": "secret"}) == (WORDS, "")


def test_the_server_gets_what_finds_its_run_and_nothing_else() -> None:
    env = {"JACKLINE_RUN": "r1", "JACKLINE_HOME": "/h", "JACKLINE_MARK": "m", "HOME": "/root", "SECRET": "x"}
    server = build_mcp_server(WORDS, env)
    assert server is not None
    assert (server.argv, server.env) == (WORDS, {"JACKLINE_RUN": "r1", "JACKLINE_HOME": "/h", "JACKLINE_MARK": "m"})
    assert build_mcp_server((), env) is None


SPEC = Spec(prompt="x", workspace="/")


def test_a_run_says_why_its_agent_gets_none() -> None:
    place = LaunchContext("/f", "/g", "t", "b", {}, mcp_missing="the address holds a password")
    (fact,) = build_warnings(registry.load_adapter("claude"), place, SPEC)
    assert (fact.kind, fact.data) == ("mcp.missing", {"agent": "claude", "reason": "the address holds a password"})
    assert build_warnings(registry.load_adapter("scripted"), place, SPEC) == ()
    assert build_warnings(registry.load_adapter("claude"), place._replace(mcp_missing=""), SPEC) == ()
    assert journal_events.find_kind_problem("mcp.missing"), "nobody else may write it"


# --- how


def handed(name: str, **more: object) -> Any:
    """The server as the CLI will read it."""
    launch = launched(name, mcp=SERVER, **more)
    match name:
        case "claude":
            (file,) = [word for word in launch.argv if word.endswith("claude-mcp.json")]
            assert launch.argv[launch.argv.index(file) - 1] == "--mcp-config"
            return json.loads(launch.files[file])["mcpServers"]["jackline"]
        case "codex":
            return _of_codex(launch)
        case "gemini" | "qwen":
            defaults = json.loads(launch.files[f"{FOLDER}/{name}-defaults.json"])
            return defaults["mcpServers"]["jackline"]
        case "opencode" | "kilo":
            return json.loads(launch.env[f"{name.upper()}_CONFIG_CONTENT"])["mcp"]["jackline"]
        case _:
            (server,) = json.loads(launch.env["JACKLINE_MCP_SERVERS"])
            return server


def _of_codex(launch: Launch) -> Any:
    settings = [launch.argv[at + 1] for at, word in enumerate(launch.argv) if word == "-c"]
    return tomllib.loads("\n".join(settings))["mcp_servers"]["jackline"]


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.parametrize("name", TAKERS)
def test_each_is_given_the_same_command_and_environment(name: str) -> None:
    found = handed(name)
    command = found["command"] if isinstance(found["command"], list) else [found["command"], *found["args"]]
    assert command == list(SERVER.argv)
    env = found.get("env", found.get("environment"))
    if isinstance(env, list):
        env = {one["name"]: one["value"] for one in env}
    assert env == SERVER.env


@pytest.mark.parametrize("name", sorted(registry.AGENTS))
def test_without_a_server_nothing_is_said_of_one(name: str) -> None:
    launch = launched(name)
    files = (one.decode() for one in launch.files.values())
    said = "\n".join([*launch.argv, *launch.env, *launch.env.values(), *files])
    assert "mcpServers" not in said
    assert "mcp_servers" not in said
    assert "--mcp-config" not in said
    assert "JACKLINE_MCP_SERVERS" not in said
    assert '"mcp"' not in said


@pytest.mark.parametrize("name", sorted(registry.AGENTS))
def test_only_who_declares_it_is_given_one(name: str) -> None:
    assert (name in TAKERS) is (registry.load_adapter(name).declaration.mcp or name == "gemini")
    if name not in TAKERS:
        assert launched(name, mcp=SERVER) == launched(name)


@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_servers_that_the_user_has_in_the_same_variable_stay(name: str) -> None:
    theirs = {"mcp": {"other": {"type": "local", "command": ["x"]}}, "theme": "dark"}
    variable = f"{name.upper()}_CONFIG_CONTENT"
    launch = launched(name, mcp=SERVER, environ={variable: json.dumps(theirs)})
    config_ = json.loads(launch.env[variable])
    assert (config_["theme"], sorted(config_["mcp"])) == ("dark", ["jackline", "other"])


@pytest.mark.parametrize(
    ("name", "variable"),
    [("qwen", "QWEN_CODE_SYSTEM_DEFAULTS_PATH"), ("gemini", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH")],
)
def test_defaults_of_an_administrator_are_left_alone(name: str, variable: str) -> None:
    launch = launched(name, mcp=SERVER, environ={variable: "/etc/theirs.json"})
    assert variable not in launch.env
    assert not [content for content in launch.files.values() if b"mcpServers" in content]


def test_a_user_who_is_not_root_gets_none_with_gemini(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert launched("gemini", mcp=SERVER).files == {}


def test_qwen_waits_for_the_server_as_an_acp_agent_unless_the_user_says_otherwise() -> None:
    waits = "QWEN_CODE_LEGACY_MCP_BLOCKING"
    assert launched("acp", mcp=SERVER).env[waits] == "1"
    assert waits not in launched("acp", mcp=SERVER, environ={waits: "0"}).env
    assert waits not in launched("acp").env
