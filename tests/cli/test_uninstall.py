"""`jackline uninstall`: it says what would go; with --yes that goes, and nothing else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.place import SAY, Place, is_one_line


@pytest.fixture
def used(place: Place) -> Place:
    """A place with a run, settings of the user's own, and the cache of the agents' programs."""
    settings = place.folder / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("max_steps = 9\n")
    cache = place.folder / ".cache" / "jackline" / "agents"
    for name in ("bin", "node-22.20.0", "claude-2.1.325"):
        (cache / name).mkdir(parents=True)
        (cache / name / "file").write_text("x" * 1000)
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    return place


def remaining(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_looking_removes_nothing(used: Place) -> None:
    before = remaining(used.folder)
    shown = used.type("uninstall", "--json").json
    assert shown["removed"] is False
    things = {thing["path"]: thing["size"] for thing in shown["things"]}
    assert str(used.home / "state.sqlite") in things
    assert things[str(used.folder / ".cache" / "jackline" / "agents" / "claude-2.1.325")] == 1000
    assert remaining(used.folder) == before
    assert "jackline uninstall --yes" in used.type("uninstall").err


def test_it_goes_and_leaves_no_folder_behind(used: Place) -> None:
    ended = used.type("uninstall", "--yes")
    assert ended.code == 0
    assert remaining(used.folder) == {"repository", "script.json", ".config", ".cache"}
    assert used.type("uninstall", "--yes").code == 0


def test_what_is_not_ours_stays(used: Place) -> None:
    (used.home / "persona.md").write_text("mine")
    cache = used.folder / ".cache" / "jackline" / "agents"
    (cache / "my notes").write_text("mine")
    ended = used.type("uninstall", "--yes", "--json").json
    assert ended["left"] == [str(used.home / "persona.md")]
    assert remaining(used.home) == {"persona.md"}
    assert remaining(cache) == {"my notes"}


@pytest.mark.parametrize("where", ["HOME", "repository"])
def test_a_home_that_is_also_somebody_elses_keeps_common_names(place: Place, where: str) -> None:
    home = place.folder if where == "HOME" else place.repository
    for name in ("logs", "archive", "runs"):
        (home / name).mkdir()
        (home / name / "mine").write_text("mine")
    (home / ".git").mkdir()
    assert place.type("uninstall", "--yes", environ={"JACKLINE_HOME": str(home)}).code == 0
    assert {f"{name}/mine" for name in ("logs", "archive", "runs")} <= remaining(home)


def test_a_cache_that_is_something_else_stays(place: Place) -> None:
    mine = place.folder / "mine"
    (mine / "bin").mkdir(parents=True)
    assert place.type("uninstall", "--yes", environ={"JACKLINE_AGENTS_CACHE": str(mine)}).code == 0
    assert (mine / "bin").exists()


def test_not_while_something_runs(used: Place) -> None:
    running = used.start_playing({"touch": used.path("up")}, {"hang": True}, words=("--run-id", "busy"))
    used.wait_for("up")
    before = {name for name in remaining(used.home) if not name.startswith("runs/busy/")}  # that one is being written
    refused = used.type("uninstall", "--yes")
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert "jackline cancel busy" in refused.err
    assert remaining(used.home) >= before
    (used.home / "state.sqlite").rename(used.folder / "aside")  # the lock alone tells it, too
    assert used.type("uninstall", "--yes").code == 2
    (used.folder / "aside").rename(used.home / "state.sqlite")
    os.kill(running.pid, signal.SIGTERM)
    used.end_of(running)
    assert used.type("uninstall", "--yes").code == 0
    assert not used.home.exists()


def test_a_damaged_database_can_go(place: Place) -> None:
    place.home.mkdir()
    (place.home / "state.sqlite").write_bytes(b"no database")
    assert place.type("uninstall", "--yes").code == 0
    assert not place.home.exists()


def test_a_server_is_not_touched(used: Place) -> None:
    ended = used.type("uninstall", environ={"JACKLINE_DATABASE": "postgresql://127.0.0.1:1/runs"})
    assert ended.code == 0
    assert "PostgreSQL is not touched" in ended.err
    assert "127.0.0.1" not in ended.out
