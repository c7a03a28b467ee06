"""Which account is chosen, which environment it has, how a person logs in, and what is redacted from then on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackline.agents import registry
from jackline.app import agents, environment
from jackline.app.accounts import format_login
from jackline.app.agent_logins import find_login_problem
from jackline.app.config import Config, load_config
from jackline.app.home import Home
from jackline.domain.agent_health import AgentHealth
from jackline.domain.states import Failure
from jackline.errors import AgentUnavailable
from jackline.store.models import RunChange
from tests.support.stores import AT, begun

KEY = "fm4Qx9Lw2Zt7Bn5v"
TABLES = """
[agents.finch]
command = ["true"]
env = ["FINCH_KEY"]

[accounts.finch.a]
[accounts.finch.b]
[accounts.finch.c]
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("JACKLINE_", "ANTHROPIC_", "CLAUDE_", "GEMINI_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".config" / "jackline").mkdir(parents=True)
    return tmp_path


def configured(user: Path, text: str) -> Config:
    (user / ".config" / "jackline" / "config.toml").write_text(text)
    return load_config(os.environ, str(user))


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def rested(home: Home, *found: AgentHealth) -> None:
    lease = begun(home.store(create=True))
    for one in found:
        home.store().leases.write_change(lease, RunChange(at=AT, health=one))


def test_auto_takes_who_does_not_rest_then_who_was_limited_longest_ago(user: Path) -> None:
    with Home(configured(user, TABLES)) as home:
        assert agents.expand_account(home, "finch@auto") == ("finch@a", "finch@b", "finch@c", "finch")
        limit, never = str(Failure.LIMIT), 4_000_000_000_000
        rested(
            home,
            AgentHealth("finch@a", limit, until=never, at=3),
            AgentHealth("finch@b", limit, until=5, at=2),
            AgentHealth("finch@c", limit, until=4, at=1),
            AgentHealth("finch", "", until=0, at=9),
        )
        assert agents.expand_account(home, "finch@auto") == ("finch", "finch@c", "finch@b", "finch@a")


def test_an_account_has_the_variables_of_every_layer_and_no_other_key(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "the-usual-one")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gateway.example.org")
    private(user / "home.env", "GH_TOKEN=x\nANTHROPIC_AUTH_TOKEN=home\nCLAUDE_CONFIG_DIR=/home/env\n")
    private(user / "claude.env", "ANTHROPIC_MODEL=large\nMY_OWN=1\n")
    private(user / "key", f"{KEY}\n")
    config = configured(
        user,
        f"""
        env_file = "{user}/home.env"
        [agents.claude]
        env_file = "../../claude.env"
        [accounts.claude.work]
        CLAUDE_CONFIG_DIR = "~/work"
        [accounts.claude.key]
        ANTHROPIC_API_KEY = {{ file = "~/key" }}
        """,
    )
    usual = environment.read_agent_environ(config, registry.load_adapter("claude").declaration)
    assert (usual["ANTHROPIC_API_KEY"], usual["ANTHROPIC_AUTH_TOKEN"]) == ("the-usual-one", "home")
    assert (usual["CLAUDE_CONFIG_DIR"], usual["ANTHROPIC_MODEL"], usual["GH_TOKEN"]) == ("/home/env", "large", "x")
    work = environment.read_agent_environ(config, registry.load_adapter("claude@work").declaration)
    assert work["CLAUDE_CONFIG_DIR"] == str(user / "work")
    assert not {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"} & work.keys()
    assert (work["ANTHROPIC_BASE_URL"], work["ANTHROPIC_MODEL"]) == ("http://gateway.example.org", "large")
    key = environment.read_agent_environ(config, registry.load_adapter("claude@key").declaration)
    assert key["ANTHROPIC_API_KEY"] == KEY
    assert not {"CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN"} & key.keys()
    others = environment.read_home_environ(config)
    assert "MY_OWN" not in others


def test_what_an_account_cannot_read_makes_it_unavailable(user: Path) -> None:
    (user / "key").write_text(KEY)  # open to others
    config = configured(user, '[accounts.claude.work]\nANTHROPIC_API_KEY = { file = "~/key" }\n')
    (user / "key").chmod(0o644)
    with pytest.raises(AgentUnavailable, match=r"ANTHROPIC_API_KEY in \[accounts.claude.work\]: .*chmod 600") as caught:
        environment.read_agent_environ(config, registry.load_adapter("claude@work").declaration)
    assert KEY not in str(caught.value)


def test_a_redactor_knows_the_files_at_once_and_what_is_read_later(user: Path) -> None:
    plain, later = "w8Rk3Vd6Yp1Hs4Jc", "t5Gb0Nf9Xq2Ma7Le"
    path = private(user / "home.env", f"SOMETHING={plain}\nLEVEL=verbose\nURL=https://ada:{KEY}@example.org/x\n")
    config = configured(user, f'env_file = "{path}"\n')
    redactor = environment.make_redactor(config)
    assert redactor.redact(f"a {plain} b {KEY} c verbose") == "a [redacted] b [redacted] c verbose"
    private(path, f"SOMETHING={later}\n")
    assert redactor.redact(later) == later
    environment.read_home_environ(config)  # as each attempt does
    assert redactor.redact(f"{plain} {later}") == "[redacted] [redacted]"


def test_a_redactor_knows_the_path_of_a_webhook(user: Path) -> None:
    part = "q7Zt2Lw9Bx4Kn6Vr"
    table = f'[channels.hook]\ntype = "webhook"\nurl = "https://example.org/hooks/{part}"\nsecret = {{ env = "S" }}\n'
    redactor = environment.make_redactor(configured(user, table + '[channels.odd]\nurl = "http://[odd"\n'))
    assert redactor.redact(f"https://example.org/hooks/{part}") == "https://example.org/hooks/[redacted]"


def test_the_way_to_log_in_names_the_folder_of_the_account(user: Path) -> None:
    text = '[accounts.claude.work]\nCLAUDE_CONFIG_DIR = "~/my work"\n[accounts.gemini.work]\nGEMINI_CLI_HOME = "~/g"\n'
    config = configured(user, text)
    claude, gemini = (registry.load_adapter(f"{name}@work").declaration for name in ("claude", "gemini"))
    found = format_login(claude, environment.read_agent_environ(config, claude))
    assert found == f"run `CLAUDE_CONFIG_DIR='{user}/my work' claude auth login`"
    environ = environment.read_agent_environ(config, gemini)
    assert find_login_problem(gemini, "/bin/false", environ).startswith(
        f"not logged in: run `GEMINI_CLI_HOME={user}/g gemini`"
    )
    (user / "g" / ".gemini").mkdir(parents=True)
    (user / "g" / ".gemini" / "oauth_creds.json").touch()
    assert find_login_problem(gemini, "/bin/false", environ) == ""
    assert find_login_problem(registry.load_adapter("gemini").declaration, "/bin/false", os.environ)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("gemini", ".env", "GEMINI_API_KEY=x"),
        ("gemini", ".gemini/settings.json", '{"security": {"auth": {"selectedType": "x"}}}'),
        ("claude", ".claude/settings.json", '{"apiKeyHelper": "./key"}'),
        ("codex", ".codex/config.toml", 'model_provider = "own"'),
        ("qwen", ".env", "OPENAI_API_KEY=x"),
    ],
)
def test_a_project_that_may_have_a_key_is_no_false_alarm(user: Path, name: str, file: str, text: str) -> None:
    declaration, workspace = registry.load_adapter(name).declaration, user / "project" / "below"
    workspace.mkdir(parents=True)
    environ = {"HOME": str(user), "PATH": os.environ["PATH"]}
    assert find_login_problem(declaration, "/bin/false", environ, str(workspace))
    path = user / "project" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("nothing")
    assert find_login_problem(declaration, "/bin/false", environ, str(workspace))
    path.write_text(text)
    assert find_login_problem(declaration, "/bin/false", environ, str(workspace)) == ""
    assert find_login_problem(declaration, "/bin/false", environ)
