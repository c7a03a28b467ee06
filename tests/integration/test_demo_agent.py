"""`jackline demo --agent NAME` with the real CLIs: what it tells is true, nothing of the user's is used or left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackline.engine import orphans
from tests.cli.place import Ended, Place, is_one_line
from tests.real_agents import binary

SECONDS = 400.0
SECRET = "a-key-of-the-user"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_KEY")
# The CLI itself, after it has written down what it was given.
SPY = """#!/bin/sh
env >> '{log}'
echo ---- >> '{log}'
exec '{program}' "$@"
"""
OTHERS = [pytest.param(name, marks=pytest.mark.full) for name in ("codex", "gemini", "kilo", "opencode", "qwen")]


@dataclass(frozen=True)
class Played:
    """A demo of a CLI that was played to its end."""

    place: Place
    ended: Ended

    @property
    def environments(self) -> str:
        return (self.place.folder / "environments").read_text()


def prepare(place: Place, agent: str) -> None:
    """A user with keys in the environment, settings that would spoil it, and a temporary folder to look into."""
    place.repository.mkdir()
    (place.folder / "tmp").mkdir()
    settings = place.folder / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('database = "postgresql://127.0.0.1:1/mine"\nmax_calls = 1\n')
    spy = place.folder / agent
    spy.write_text(SPY.format(log=place.path("environments"), program=binary(agent)))
    spy.chmod(0o700)
    place.environ.update(dict.fromkeys(KEYS, SECRET))
    place.environ.update({"TMPDIR": place.path("tmp"), f"JACKLINE_{agent.upper()}_BINARY": str(spy)})


def demo(place: Place, *words: str) -> Ended:
    process = place.start("demo", *words)
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out, err)


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("demo"))  # a short path: sockets lie below it
    yield made
    made.close()


@pytest.fixture(scope="module", params=["claude", *OTHERS])
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def played(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Played once for all tests that only look."""
    place = Place(tmp_path_factory.mktemp("demo"))
    prepare(place, agent)
    yield Played(place, demo(place, "--agent", agent, "--json"))
    place.close()


def act(played: Played, number: int) -> dict[str, Any]:
    told: dict[str, Any] = played.ended.json["acts"][number]
    return told


def test_it_succeeds(played: Played, agent: str) -> None:
    assert (played.ended.code, played.ended.err) == (0, ""), played.ended
    assert played.ended.json["agent"] == agent
    assert [one["state"] for one in played.ended.json["acts"]] == ["succeeded"] * 2


def test_the_work_is_told(played: Played) -> None:
    told = act(played, 0)
    assert [one.partition(" ")[2] for one in told["commits"]] == ["Add a greeting"]
    assert told["said"] == "Hello! The greeting is committed."
    assert told["session"]
    assert (told["tokens_input"], told["tokens_output"]) >= (44, 28)
    assert [one.rpartition(" ")[2] for one in told["calls"]] == ["(done)"] * 3


def test_the_cli_itself_was_killed_and_its_session_went_on(played: Played) -> None:
    told = act(played, 1)
    assert told["ends"] == ["crashed: killed by SIGKILL", "ok"]
    assert told["sessions"] == [told["session"]] * 2
    assert told["told"].startswith("Your work on this task was interrupted")
    assert told["said"].startswith("It was delivered already")


def test_it_is_given_no_key_and_no_home_of_the_user(played: Played) -> None:
    started = [text for text in played.environments.split("----\n") if "JACKLINE_MARK=" in text]
    assert len(started) >= 3  # two turns and one that was killed
    for text in started:
        assert SECRET not in text
        assert f"\nHOME={played.place.folder}\n" not in f"\n{text}"


def test_nothing_is_left(played: Played) -> None:
    assert os.listdir(played.place.folder / "tmp") == []
    assert not played.place.home.exists()
    assert os.listdir(played.place.repository) == []
    assert os.listdir(played.place.folder / ".config") == ["jackline"]  # which the user had


@pytest.mark.full
def test_people_are_told_what_they_see(place: Place) -> None:
    prepare(place, "claude")
    ended = demo(place, "--agent", "claude", "--keep", place.path("kept here"))
    assert (ended.code, ended.err) == (0, "")
    said = (
        "2.1",
        "Add a greeting",
        "Interrupted, outcome unknown",
        "no process of it is left",
        "asked jackline's gate",
        "kept here",
    )
    assert [words for words in said if words not in ended.out] == []
    assert (place.folder / "kept here" / "act-two" / "repository" / "deliveries.txt").read_text() == "delivered\n"
    where = {
        "JACKLINE_HOME": place.path("kept here/home"),
        "JACKLINE_DATABASE": place.path("kept here/home/state.sqlite"),
    }
    shown = place.type("show", "act-two", "--json", environ=where).json
    assert [turn["failure"] for turn in shown["turns"]] == ["crashed", None]
    assert json.dumps(shown["calls"]).count("sleep 600") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_whoever_ends_it_finds_nothing_left(place: Place, number: signal.Signals) -> None:
    prepare(place, "claude")
    process = place.start("demo", "--agent", "claude")
    (effect,) = wait_for(process, place.folder / "tmp", "*/act-two/repository/deliveries.txt")
    user = str(effect.parents[1] / "user")
    assert orphans.find_orphans({"HOME": user})
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (130, "jackline: interrupted\n")
    assert os.listdir(place.folder / "tmp") == []
    assert orphans.find_orphans({"HOME": user}) == []


def wait_for(process: subprocess.Popen[str], folder: Path, pattern: str) -> list[Path]:
    until = time.monotonic() + SECONDS
    while not (found := list(folder.glob(pattern))):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, f"{pattern} never appeared"
        time.sleep(0.02)
    return found


def test_a_cli_that_is_missing_is_one_line_with_its_install_command(place: Place) -> None:
    place.repository.mkdir()
    (place.folder / "tmp").mkdir()
    place.environ.update({"PATH": "/usr/bin:/bin", "TMPDIR": place.path("tmp")})
    ended = demo(place, "--agent", "claude")
    assert (ended.code, is_one_line(ended), ended.out) == (13, True, ""), ended
    assert "npm install -g @anthropic-ai/claude-code" in ended.err
    assert os.listdir(place.folder / "tmp") == []


@pytest.mark.parametrize("name", ["nobody", "ollama", "scripted", ""])
def test_an_agent_that_cannot_be_shown_is_one_line(place: Place, name: str) -> None:
    place.repository.mkdir()
    ended = demo(place, "--agent", name)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "choose one of" in ended.err


def test_a_cli_that_fails_is_one_line_and_leaves_nothing(place: Place) -> None:
    """One that says its version and can do nothing else."""
    place.repository.mkdir()
    (place.folder / "tmp").mkdir()
    broken = place.folder / "claude"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo 2.1.325\necho "no use" >&2\nexit 3\n')
    broken.chmod(0o700)
    place.environ.update({"JACKLINE_CLAUDE_BINARY": str(broken), "TMPDIR": place.path("tmp")})
    ended = demo(place, "--agent", "claude")
    assert (ended.code, is_one_line(ended)) == (1, True), ended
    assert "did not go as promised" in ended.err
    assert os.listdir(place.folder / "tmp") == []
