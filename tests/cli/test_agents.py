"""`jackline agents`: lists every agent, installed or not, and sends no prompt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackline.agents import registry
from tests.cli.place import Place


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
