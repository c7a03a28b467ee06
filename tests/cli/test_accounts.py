"""Accounts of agents: chosen by name or by `auto`, switched at a limit, kept apart in health, sessions and turns."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jackline.app.config import load_config
from jackline.errors import ConfigError

if TYPE_CHECKING:
    from tests.cli.place import Ended, Place

FUTURE = 4_000_000_000  # seconds
KEY = "zq8fk2LmW4vT9xB1"  # nothing about it looks like a secret but its length
# It prints jackline's own event lines. What it gets goes to a file of its account; a full account reports a limit.
FINCH = f"""
cat > "seen-$FINCH_NAME.txt"
env | grep -c "^FINCH_KEY=" > "keys-$FINCH_NAME.txt"
echo "{{\\"type\\":\\"message\\",\\"text\\":\\"the key is $FINCH_KEY\\"}}"
[ "$FINCH_NAME" = full ] || {{ echo '{{"type":"end"}}'; exit 0; }}
echo '{{"type":"limit","detail":"five-hour limit","resets_at":{FUTURE}}}'; exit 1
"""
TABLES = f"""
[agents.finch]
command = {json.dumps(["sh", "-c", FINCH, "finch", "{session}"])}
resume = {json.dumps(["sh", "-c", FINCH, "finch", "{session}"])}
format = "lines"
env = ["FINCH_NAME", "FINCH_KEY", "FINCH_MORE"]
"""
ACCOUNTS = """
[accounts.finch.full]
FINCH_NAME = "full"

[accounts.finch.spare]
FINCH_NAME = "spare"
FINCH_KEY = { env = "SPARE_KEY" }
"""


def configure(place: Place, text: str) -> Path:
    path = place.folder / ".config" / "jackline" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refused(ended: Ended) -> str:
    assert ended.code == 2, ended
    (line,) = ended.err.splitlines()
    return line


@pytest.fixture
def birds(place: Place) -> Place:
    configure(place, TABLES + ACCOUNTS)
    place.environ |= {"SPARE_KEY": KEY, "FINCH_NAME": "usual", "FINCH_KEY": "the-usual-key-1"}
    return place


def turns(place: Place, run: str) -> list[str]:
    return [turn["agent"] for turn in place.type("show", run, "--json").json["turns"]]


def test_an_account_has_its_own_variables_and_none_of_the_usual_ones(birds: Place) -> None:
    ended = birds.type("run", "sing", "--agent", "finch@spare", "--json")
    assert (ended.code, ended.json["agent"]) == (0, "finch@spare")
    assert (birds.repository / "keys-spare.txt").read_text() == "1\n"
    birds.type("run", "sing", "--agent", "finch", "--account", "full")
    assert (birds.repository / "keys-full.txt").read_text() == "0\n"  # not the key of the usual environment
    birds.type("run", "sing", "--agent", "finch")
    assert (birds.repository / "keys-usual.txt").read_text() == "1\n"


def test_at_a_limit_the_run_continues_on_another_account_in_a_fresh_session(birds: Place) -> None:
    ended = birds.type("run", "sing", "--agent", "finch", "--account", "auto", "--json")
    assert (ended.code, ended.json["agent"]) == (0, "finch@spare")
    shown = birds.type("show", ended.json["id"], "--json").json
    assert [turn["agent"] for turn in shown["turns"]] == ["finch@full", "finch@spare"]
    assert len({turn["session"] for turn in shown["turns"]}) == 2
    assert (birds.repository / "seen-spare.txt").read_text().startswith("sing\n")
    assert shown["spec"]["fallback"] == ["finch@spare", "finch"]  # the usual environment can work, so it belongs to it
    health = {one["name"]: one for one in birds.type("agents", "--json").json["agents"]}
    assert (health["finch@full"]["health"], health["finch@full"]["account"]) == ("resting", "full")
    assert health["finch@full"]["rests_until"].startswith("2096-")
    assert (health["finch@spare"]["health"], health["finch"]["health"]) == ("ready", "ready")
    second = birds.type("run", "sing", "--agent", "finch@auto", "--json").json
    assert turns(birds, second["id"]) == ["finch@spare"]  # the one that rests comes last
    assert birds.type("list", "--agent", "finch", "--json").rows == birds.type("list", "--json").rows
    assert birds.type("list", "--agent", "finch@full", "--json").rows == []  # none of them is with it now


def test_a_run_keeps_its_accounts_when_it_is_resumed(birds: Place) -> None:
    ended = birds.type("run", "sing", "--agent", "finch@full", "--json")
    assert (ended.code, ended.json["reason"], ended.json["agent"]) == (10, "limit", "finch@full")
    birds.environ["JACKLINE_ACCOUNT"] = "spare"
    run = birds.type("resume", ended.json["id"], "--json").json
    assert run["agent"] == "finch@full"


def test_the_same_request_is_the_same_run_whichever_account_was_chosen(birds: Place) -> None:
    words = ("run", "sing", "--agent", "finch@auto", "--run-id", "nightly", "--json")
    assert birds.type(*words).json["agent"] == "finch@spare"
    assert birds.type(*words).code == 0
    assert refused(birds.type("run", "sing", "--agent", "finch@spare", "--run-id", "nightly")).startswith(
        "jackline: run nightly"
    )


def test_what_names_no_account_is_one_clear_line(birds: Place) -> None:
    assert "finch has no account 'other' (known: finch@full, finch@spare)" in refused(
        birds.type("run", "sing", "--agent", "finch@other")
    )
    assert "name two accounts" in refused(birds.type("run", "sing", "--agent", "finch@full", "--account", "spare"))
    assert "command does not log in, so it has no accounts" in refused(
        birds.type("run", "sing", "--agent", "command", "--account", "x", "--", "ls")
    )
    for words in (("run",), ("enqueue",)):
        scripted = birds.type(*words, "sing", "--agent", "scripted@x", "--script", birds.script({"say": "hello"}))
        assert "scripted does not log in, so it has no accounts: use --agent scripted" in refused(scripted)
    assert "does not name an agent" in refused(birds.type("run", "sing", "--agent", "finch@"))
    assert "must be the name of an account" in refused(
        birds.type("run", "sing", "--agent", "finch", "--account", "A b")
    )
    assert "name it with --agent" in refused(birds.type("run", "sing", "--agent", "auto", "--account", "full"))
    assert "claude has no accounts to choose from" in refused(birds.type("run", "sing", "--agent", "claude@auto"))


def test_a_setting_names_the_account_of_the_agents_that_have_accounts(birds: Place) -> None:
    birds.environ["JACKLINE_ACCOUNT"] = "spare"
    assert birds.type("run", "sing", "--agent", "finch", "--json").json["agent"] == "finch@spare"
    assert birds.type("run", "sing", "--agent", "finch@full", "--json").json["agent"] == "finch@full"
    assert birds.type("run", "x", "--agent", "command", "--json", "--", "true").json["agent"] == "command"


def test_a_missing_variable_is_reported_before_the_agent_starts(birds: Place) -> None:
    del birds.environ["SPARE_KEY"]
    ended = birds.type("run", "sing", "--agent", "finch@spare", "--json")
    assert (ended.code, ended.json["failure"]) == (13, "unavailable")
    assert "FINCH_KEY in [accounts.finch.spare]: the variable SPARE_KEY is not set" in ended.json["detail"]
    assert not (birds.repository / "seen-spare.txt").exists()


def test_a_missing_file_with_a_key_is_named(birds: Place) -> None:
    """The path is not redacted, although it follows the name of a secret variable."""
    missing = birds.repository / "team-2.key"
    tables = TABLES.replace("FINCH_MORE", "FINCH_API_KEY")
    configure(birds, f"{tables}[accounts.finch.team]\nFINCH_API_KEY = {{ file = '{missing}' }}\n")
    ended = birds.type("run", "sing", "--agent", "finch@team", "--json")
    assert f"FINCH_API_KEY in [accounts.finch.team]: {missing} cannot be read" in ended.json["detail"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[accounts.finch.a]\nFINCH_KEY = "sk-ant-c9b4f81d2e6a7f30"', "FINCH_KEY is a secret"),
        ('[accounts.finch.a]\nFINCH_NAME = "ghp_0123456789abcdefghijABCDEFGHIJ012345"', "FINCH_NAME is a secret"),
        ("[accounts.finch.a]\nFINCH_KEY = 3", "must be text"),
        ('[accounts.finch.a]\nFINCH_KEY = { env = "A", file = "B" }', "must be text"),
        ('[accounts.finch.a]\nFINCH_KEY = { value = "A" }', "must be text"),
        ("[accounts.finch.a]\nFINCH_KEY = {}", "must be text"),
        ('[accounts.finch.a]\nPATH = "/tmp"', "sets PATH"),
        ('[accounts.finch.A]\nFINCH_NAME = "x"', "use another name"),
        ('[accounts.finch.auto]\nFINCH_NAME = "x"', "use another name"),
        ("[accounts.finch]\na = 1", "must be a table"),
        ("accounts = 1", "accounts must be tables"),
        ('account = "A"', "must be the name of an account"),
    ],
)
def test_an_account_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "jackline").mkdir()
    (tmp_path / "jackline" / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_config({"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}, str(tmp_path))
    assert "c9b4f81d" not in str(caught.value)
    assert "ghp_" not in str(caught.value)


@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        '[accounts.finch.a]\nFINCH_NAME = "x"',
        'account = "spare"',
        'agent = "finch@spare"',
        'fallback = "codex,finch@spare"',
        'auto = "finch@spare"',
        'env_file = "keys.env"',
        '[agents.finch]\nenv_file = "keys.env"',
    ],
)
def test_a_project_names_no_accounts_and_no_files_even_if_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, is_trusted: bool
) -> None:
    monkeypatch.setattr("jackline.app.trust.is_trusted", lambda *_: is_trusted)
    (tmp_path / "jackline.toml").write_text(text)
    config = load_config({"HOME": str(tmp_path)}, str(tmp_path))
    assert "a project may not" in config.problem
    assert (config.accounts, config.get_text("env_file"), config.get_text("account")) == ({}, "", "")


def test_no_run_starts_in_a_project_that_names_an_account(birds: Place) -> None:
    (birds.repository / "jackline.toml").write_text('agent = "finch@spare"')
    assert "a project may not choose an account" in refused(birds.type("run", "sing", "--agent", "finch"))


def test_a_task_of_a_project_chooses_no_account(birds: Place) -> None:
    folder = birds.repository / ".agents" / "tasks"
    folder.mkdir(parents=True)
    (folder / "song.md").write_text("---\nagent: finch@spare\n---\nsing\n")
    assert "a project may not choose an account" in refused(birds.type("run", "--task", "song"))


def test_an_agent_that_does_not_know_a_variable_says_which_it_knows(birds: Place) -> None:
    configure(birds, '[accounts.claude.work]\nCODEX_HOME = "~/x"\n[accounts.ollama.x]\n[accounts.wren.x]\n')
    rows = {one["name"]: one for one in birds.type("agents", "--json").json["agents"]}
    assert "ollama does not log in, so it has no accounts" in rows["ollama@x"]["why"]
    assert "there is no agent 'wren'" in rows["wren@x"]["why"]
    ended = birds.type("run", "sing", "--agent", "claude@work", "--json")
    if rows["claude"]["binary"]:
        assert "[accounts.claude.work] CODEX_HOME is not a variable of claude" in ended.json["detail"]


def everything_written(folder: Path) -> str:
    """Every file below the home, whatever it is."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(os.fsdecode(path.read_bytes()) for path in found)


def test_values_of_an_env_file_are_never_written(birds: Place) -> None:
    more, whole = "Wd5hP0sNc7", "hx7Gq2mZ8rT4"
    keys = birds.folder / "keys.env"
    keys.write_text(f"FINCH_MORE_TOKEN={more}\nFINCH_MORE='{KEY}'\n")
    keys.chmod(0o600)
    own = birds.folder / "finch.env"
    own.write_text(f"FINCH_KEY='{whole}'\n")
    own.chmod(0o600)
    text = TABLES.replace("the key is $FINCH_KEY", "keys: $FINCH_KEY $FINCH_MORE")
    configure(birds, f'env_file = "{keys}"\n{text}env_file = "{own}"\n')
    birds.environ = {"FINCH_NAME": "usual"}
    ended = birds.type("run", f"say {more}", "--agent", "finch", "--json")
    assert ended.code == 0, ended
    assert (birds.repository / "keys-usual.txt").read_text() == "1\n"  # it reached the agent
    assert "say [redacted]" in (birds.repository / "seen-usual.txt").read_text()
    birds.type("work", "add", "note", "--payload", json.dumps({"text": f"{KEY} {whole}"}))
    written = everything_written(birds.home)
    assert "keys: [redacted] [redacted]" in written
    for value in (KEY, more, whole):
        assert value not in written
        assert value not in ended.out + ended.err


def test_a_file_that_is_open_to_others_stops_work_and_nothing_else(birds: Place) -> None:
    keys = birds.folder / "keys.env"
    keys.write_text("FINCH_KEY=x\n")
    keys.chmod(0o600)
    run = birds.type("run", "sing", "--agent", "finch@full", "--env-file", str(keys), "--json").json
    keys.chmod(0o644)
    birds.environ["JACKLINE_ENV_FILE"] = str(keys)
    ended = birds.type("resume", run["id"])
    assert (ended.code, f"open to other users: chmod 600 {keys}" in ended.err) == (2, True)
    assert birds.type("cancel", run["id"]).code == 0


def test_an_env_file_that_changes_while_a_run_lives_has_to_be_confirmed(birds: Place) -> None:
    keys = birds.folder / "keys.env"
    keys.write_text("FINCH_MORE=x\n")
    keys.chmod(0o600)
    text = TABLES.replace("cat > ", f"echo FINCH_MORE=y > {keys}; cat > ")
    configure(birds, f'env_file = "{keys}"\n{text}')
    assert "keys.env" in birds.type("run", "sing", "--agent", "finch").err
    assert f"changed since you started a run: {keys}" in refused(birds.type("run", "sing", "--agent", "finch"))


@pytest.fixture
def gemini(place: Place) -> Place:
    """A CLI that leaves a file if it gets a prompt."""
    program = place.folder / "gemini"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 0.61.0 && exit\ntouch started\n')
    program.chmod(0o755)
    place.environ["JACKLINE_GEMINI_BINARY"] = str(program)
    return place


def test_an_agent_without_credentials_is_not_started(gemini: Place) -> None:
    ended = gemini.type("run", "sing", "--agent", "gemini", "--json")
    assert (ended.code, ended.json["failure"], ended.json["state"]) == (1, "authentication", "failed")
    assert "not logged in: run `gemini` once and choose how to log in, or set GEMINI_API_KEY" in ended.json["detail"]
    assert not (gemini.repository / "started").exists()
    (entry,) = gemini.type("inbox", "--json").rows
    assert (entry["kind"], entry["agent"]) == ("log_in", "gemini")
    gemini.environ["GEMINI_API_KEY"] = "x"
    gemini.type("resume", ended.json["id"], "--json")
    assert (gemini.repository / "started").exists()


def test_the_next_agent_takes_over_from_one_without_credentials(gemini: Place) -> None:
    configure(gemini, TABLES)
    ended = gemini.type("run", "sing", "--agent", "gemini", "--fallback", "finch", "--json")
    assert (ended.code, ended.json["agent"]) == (0, "finch")
    assert not (gemini.repository / "started").exists()


def test_a_queued_run_is_not_refused_for_missing_credentials(gemini: Place) -> None:
    ended = gemini.type("enqueue", "sing", "--agent", "gemini")
    assert ended.code == 0
    assert "gemini is not logged in here: run `gemini` once" in ended.err
    gemini.environ["GEMINI_API_KEY"] = "x"
    assert "logged in" not in gemini.type("enqueue", "sing", "--agent", "gemini").err


def test_a_service_resolves_the_environment_where_it_works(birds: Place) -> None:
    """Neither the key nor the file is known where the run is queued."""
    keys = birds.folder / "keys.env"
    keys.write_text(f"SPARE_KEY={KEY}\n")
    keys.chmod(0o600)
    del birds.environ["SPARE_KEY"]
    queued = birds.type("enqueue", "sing", "--agent", "finch@spare", "--json").json
    assert birds.type("serve", "--once", "--env-file", str(keys)).code == 0
    shown = birds.type("show", queued["id"], "--json").json
    assert (shown["state"], shown["agent"]) == ("succeeded", "finch@spare")
    assert (birds.repository / "keys-spare.txt").read_text() == "1\n"
    assert KEY not in everything_written(birds.home)
