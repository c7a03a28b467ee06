"""`jackline agents`: lists every agent, installed or not, and sends no prompt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackline.agents import registry
from tests.cli.place import Place
from tests.cli.test_terminal import Terminal


def install(place: Place, name: str, says: str) -> Path:
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >> {place.folder}/asked\n{says}\n')
    path.chmod(0o700)
    place.environ["PATH"] = f"{folder}:/usr/bin:/bin"
    return path


@pytest.fixture
def real() -> str:
    """A built-in agent that is a program to be found and asked."""
    found = (registry.load_adapter(name).declaration for name in registry.list_agents())
    return next(one.name for one in found if one.version_arguments and one.minimum)


def of(place: Place, name: str) -> dict[str, object]:
    listed: list[dict[str, object]] = place.type("agents", "--json").json["agents"]
    return next(one for one in listed if one["name"] == name)


def test_all_are_listed_and_scripted_is_ready(place: Place) -> None:
    listed = place.type("agents", "--json").json["agents"]
    assert [one["name"] for one in listed] == list(registry.list_agents())
    scripted = of(place, "scripted")
    assert (scripted["usable"], scripted["health"], scripted["why"]) == (True, "ready", None)
    assert not place.home.exists()


def test_one_that_is_there_has_its_version(place: Place, real: str) -> None:
    declaration = registry.load_adapter(real).declaration
    path = install(place, declaration.binary, "echo 999.0.0")
    assert declaration.login is not None
    place.environ[declaration.login.variables[0]] = "dummy"
    seen = of(place, real)
    assert (seen["health"], seen["version"], seen["binary"]) == ("ready", "999.0.0", str(path))
    assert (place.folder / "asked").read_text().split() == list(declaration.version_arguments)
    rows = [line.split("\t") for line in place.type("agents").out.splitlines()]
    assert {len(row) for row in rows} == {9}
    assert next(row for row in rows if row[0] == real)[-1] == str(path)


def test_an_old_one_and_a_missing_one_say_why(place: Place, real: str) -> None:
    declaration = registry.load_adapter(real).declaration
    install(place, declaration.binary, "echo 0.0.1")
    old = of(place, real)
    assert (old["usable"], old["health"]) == (False, "unusable")
    assert "is 0.0.1, needs" in str(old["why"])
    os.unlink(place.folder / "bin" / declaration.binary)
    gone = of(place, real)
    assert (gone["health"], gone["binary"]) == ("missing", None)
    assert declaration.install in str(gone["why"])


LOGGED_OUT = {
    "claude": ("auth", "run `claude auth login`", ".claude/.credentials.json"),
    "codex": ("login", "run `codex login`", ".codex/auth.json"),
}


@pytest.mark.parametrize("name", LOGGED_OUT)
def test_one_that_is_not_logged_in_is_not_ready(place: Place, name: str) -> None:
    word, command, credentials = LOGGED_OUT[name]
    install(place, name, f'[ "$1" = {word} ] && exit 1\necho 999.0.0')
    seen = of(place, name)
    assert (seen["health"], seen["logged_in"], seen["why"]) == ("not logged in", False, f"not logged in: {command}")
    assert seen["usable"] is True  # a run is not refused: it fails by itself, if it has to
    finding = next(one for one in place.type("doctor", "--json").json["findings"] if one["part"] == f"agent {name}")
    assert (finding["state"], finding["fix"]) == ("warn", command)
    row = next(line for line in place.type("agents").out.splitlines() if line.startswith(name))
    assert row.endswith(command)
    file = place.folder / credentials
    file.parent.mkdir()
    file.write_text("")
    file.chmod(0)  # its content is never read
    asked = (place.folder / "asked").read_text()
    seen = of(place, name)
    assert (seen["health"], seen["logged_in"]) == ("ready", True)
    assert (place.folder / "asked").read_text().replace("--version\n", "") == asked.replace("--version\n", "")


def test_a_provider_of_its_own_needs_no_login(place: Place) -> None:
    install(place, "codex", '[ "$1" = login ] && exit 1\necho 999.0.0')
    (place.folder / ".codex").mkdir()
    settings = place.folder / ".codex" / "config.toml"
    settings.write_text('model = "x"\n')
    assert of(place, "codex")["health"] == "not logged in"
    settings.write_text('model_provider = "mine"\n')
    assert of(place, "codex")["health"] == "ready"


def test_a_slow_program_does_not_hold_the_other_rows_back(place: Place) -> None:
    install(place, "codex", f"while [ ! -e {place.path('go')} ]; do sleep 0.05; done\necho 999.0.0")
    terminal = Terminal(place, "agents", "--no-color", COLUMNS="60")
    terminal.until(r"scripted +ready")
    terminal.until(r"gemini +missing")
    assert "codex" not in terminal.seen.replace("@openai/codex", "")
    place.let_go("go")
    lines = terminal.end().splitlines()
    assert lines[0].startswith("AGENT")
    codex = next(number for number, line in enumerate(lines) if line.startswith("codex "))
    assert codex > max(number for number, line in enumerate(lines) if line.startswith(("scripted ", "gemini ")))
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 60


def test_the_command_to_log_in_is_shown_whole_on_a_narrow_terminal(place: Place) -> None:
    install(place, "claude", '[ "$1" = auth ] && exit 1\necho 999.0.0')
    lines = Terminal(place, "agents", "--no-color", COLUMNS="60").end().splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("claude "))
    assert lines[row].split()[1:5] == ["not", "logged", "in", "999.0.0"]
    assert lines[row + 1] == "    run `claude auth login`"


def test_one_that_rests_says_why_and_until_when(place: Place) -> None:
    limit = {"limit": {"resets_in": 3600, "text": "five-hour limit"}}
    assert place.play(limit).code == 10
    seen = of(place, "scripted")
    assert (seen["health"], seen["usable"]) == ("resting", True)
    because = seen["rests_because"]
    assert isinstance(because, dict)
    assert because["failure"] == "limit"
    assert str(seen["rests_until"]).endswith("Z")
    row = next(line for line in place.type("agents").out.splitlines() if line.startswith("scripted\t"))
    assert row.split("\t")[1].startswith(f"resting: limit ({because['detail']}) until ")


@pytest.mark.parametrize("name", ["acp", "command"])
def test_a_program_that_each_run_names_is_not_guessed(place: Place, name: str) -> None:
    seen = of(place, name)
    assert (seen["health"], seen["binary"], seen["named_by_arguments"]) == ("ready", None, True)
    row = next(line for line in place.type("agents").out.splitlines() if line.startswith(f"{name}\t"))
    assert row.split("\t")[-1] == "named after --"


def test_ollama_is_not_ready_without_a_server(place: Place) -> None:
    place.environ["OLLAMA_HOST"] = "127.0.0.1:1"
    seen = of(place, "ollama")
    assert (seen["usable"], seen["health"]) == (False, "missing")
    assert seen["why"] == "there is no answer at 127.0.0.1:1: start it with `ollama serve`"


def test_auto_with_no_cli_and_no_server_finds_no_agent(place: Place) -> None:
    place.environ["OLLAMA_HOST"] = "127.0.0.1:1"
    (place.folder / "bin").mkdir()
    place.environ["PATH"] = str(place.folder / "bin")
    ended = place.type("run", "fix it", "--agent", "auto")
    assert (ended.code, ended.err.count("\n")) == (13, 1)
    assert "`jackline agents` shows why" in ended.err
    assert not place.type("list", "--json").rows


def test_a_damaged_database_does_not_hide_them(place: Place) -> None:
    place.home.mkdir()
    (place.home / "state.sqlite").write_bytes(b"no database")
    ended = place.type("agents")
    assert ended.code == 0
    assert "scripted\tready" in ended.out
    assert "damaged" in ended.err


@pytest.mark.parametrize(("used", "seen"), [("", False), ("0", False), ("1", True)])
def test_the_keys_to_an_account_reach_an_agent_only_where_it_uses_them(place: Place, used: str, seen: bool) -> None:
    place.environ.update(AWS_SECRET_ACCESS_KEY="s3cret", CLAUDE_CODE_USE_BEDROCK=used)
    planned = place.type("run", "fix it", "--agent", "claude", "--dry-run", "--json").json
    assert ("AWS_SECRET_ACCESS_KEY" in planned["environment"]) is seen
