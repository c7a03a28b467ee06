"""`jackline uninstall`: lists what it would remove; --yes removes exactly that."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from jackline.app import agent_versions
from tests.cli.place import SAY, Place, is_one_line
from tools.agents import install


@pytest.fixture
def used(place: Place) -> Place:
    """A place with a run, settings of the user's own, and the cache of the agents' programs."""
    settings = place.folder / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("max_steps = 9\n")
    cache = place.folder / ".cache" / "jackline" / "agents"
    for name in ("node-22.20.0", "claude-2.1.325"):
        (cache / name / "bin").mkdir(parents=True)
        (cache / name / "bin" / "claude").write_text("x" * 1000)
    (cache / "bin").mkdir()
    (cache / "bin" / "claude").symlink_to("../claude-2.1.325/bin/claude")
    (cache / "lock").touch()
    (cache / agent_versions.MARK).write_text("node-22.20.0\nclaude-2.1.325\n")
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    return place


def remaining(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_without_yes_nothing_is_removed(used: Place) -> None:
    before = remaining(used.folder)
    shown = used.type("uninstall", "--json").json
    assert shown["removed"] is False
    things = {thing["path"]: thing["size"] for thing in shown["things"]}
    assert str(used.home / "state.sqlite") in things
    assert things[str(used.folder / ".cache" / "jackline" / "agents")] > 2000
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
    (cache / "bin" / "mine").symlink_to("../my notes")
    (cache / "vlc-3.0").mkdir()
    ended = used.type("uninstall", "--yes", "--json").json
    assert ended["left"] == [str(used.home / "persona.md")]
    assert remaining(used.home) == {"persona.md"}
    assert remaining(cache) == {"my notes", "bin", "bin/mine", "vlc-3.0"}


@pytest.mark.parametrize("where", ["HOME", "repository"])
def test_a_home_that_is_also_somebody_elses_keeps_common_names(place: Place, where: str) -> None:
    home = place.folder if where == "HOME" else place.repository
    for name in ("logs", "archive", "runs"):
        (home / name).mkdir()
        (home / name / "mine").write_text("mine")
    (home / ".git").mkdir()
    assert place.type("uninstall", "--yes", environ={"JACKLINE_HOME": str(home)}).code == 0
    assert {f"{name}/mine" for name in ("logs", "archive", "runs")} <= remaining(home)


def test_a_cache_that_make_agents_never_marked_stays(place: Place) -> None:
    mine = place.folder / "mine"
    for name in ("bin", "node-22.20.0", "claude-2.1.325"):
        (mine / name).mkdir(parents=True)
    (mine / "lock").touch()
    before = remaining(mine)
    assert place.type("uninstall", "--yes", environ={"JACKLINE_AGENTS_CACHE": str(mine)}).code == 0
    assert remaining(mine) == before


def test_the_mark_is_the_one_that_make_agents_writes() -> None:
    assert install.MARK == agent_versions.MARK


@pytest.mark.parametrize("text", ["", "../../up\n..\n.\nbin\n/etc\n"])
def test_a_mark_names_no_folder_but_packages(place: Place, text: str) -> None:
    cache = place.folder / "mine" / "cache"
    cache.mkdir(parents=True)
    (place.folder / "up").mkdir()
    (cache / agent_versions.MARK).write_text(text)
    (cache / "claude-1.0").mkdir()
    assert place.type("uninstall", "--yes", environ={"JACKLINE_AGENTS_CACHE": str(cache)}).code == 0
    assert remaining(cache) == {"claude-1.0"}
    assert (place.folder / "up").exists()


@pytest.mark.parametrize("kind", ["text", "foreign", "empty", "folder", "pipe"])
def test_a_database_that_is_not_ours_stays(place: Place, kind: str) -> None:
    path = place.folder / "theirs.db"
    match kind:
        case "text":
            path.write_bytes(b"a letter")
        case "foreign":
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE migrations (version)")
            connection.close()
        case "empty":
            path.touch()
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path)
    (place.folder / "theirs.db-journal").write_text("theirs, too")
    ended = place.type("uninstall", "--yes", "--json", environ={"JACKLINE_DATABASE": str(path)})
    assert ended.code == 0, ended
    assert (ended.json["things"], ended.json["left"]) == ([], [str(path)])
    assert path.exists()
    assert (place.folder / "theirs.db-journal").exists()


def test_a_database_of_ours_goes_wherever_it_is(place: Place) -> None:
    path = place.folder / "elsewhere.db"
    environ = {"JACKLINE_DATABASE": str(path)}
    assert place.play(SAY, environ=environ).code == 0
    with open(path, "r+b") as file:  # damaged, but with our mark
        file.seek(5000)
        file.write(b"x" * 5000)
    assert place.type("uninstall", "--yes", environ=environ).code == 0
    assert not [one for one in place.folder.iterdir() if one.name.startswith("elsewhere")]
    assert not place.home.exists()


def test_what_was_in_the_home_before_stays(place: Place) -> None:
    theirs = ("logs/app.log", "logs/adhoc/scripted/theirs", "archive/a", "archive/b.jsonl.gz", "runs/mine/work.txt",
              "runs/other/metadata.json", "trust.json")  # fmt: skip
    for name in theirs:
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.home / name).write_text('{"a": {"mine": 1}}')
    (place.home / "logs" / "adhoc" / "link").symlink_to("/etc")
    os.mkfifo(place.home / "runs" / "mine" / "metadata.json")
    assert place.play(SAY, words=("--run-id", "ours")).code == 0
    assert place.type("db", "archive", "--older-than", "0s").code == 0
    assert (place.home / "archive" / "ours.jsonl.gz").exists()
    ended = place.type("uninstall", "--yes", "--json").json
    files = {name for name in remaining(place.home) if (place.home / name).is_file()}
    assert files == set(theirs)
    assert str(place.home / "runs" / "mine") in ended["left"]
    assert (place.home / "logs" / "adhoc" / "link").is_symlink()
    assert not (place.home / "runs" / "ours").exists()


def test_runs_are_known_by_their_summary_without_the_database(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "ours")).code == 0
    (place.home / "runs" / "theirs").mkdir()
    (place.home / "state.sqlite").unlink()
    assert place.type("uninstall", "--yes").code == 0
    assert remaining(place.home) == {"runs", "runs/theirs"}


def test_a_home_that_cannot_be_read_is_reported(place: Place) -> None:
    place.home.symlink_to("home")  # a link to itself: even root cannot read it
    for words in (("list",), ("uninstall",), ("uninstall", "--yes")):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (1, True), ended
        assert "cannot be read" in ended.err


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


def test_not_while_a_service_lives_and_what_services_leave_goes(used: Place) -> None:
    service = used.start("serve", "--json")
    assert service.stdout is not None
    assert "started" in service.stdout.readline()
    refused = used.type("uninstall", "--yes")
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert f"process {service.pid}: stop it" in refused.err
    service.kill()
    used.end_of(service)
    notes = used.home / "services" / "notes.lock"
    notes.write_text("mine")
    assert used.type("uninstall", "--yes", "--json").json["left"] == [str(used.home / "services")]
    assert remaining(used.home) == {"services", "services/notes.lock"}
    notes.unlink()
    assert used.type("uninstall", "--yes", "--json").json["left"] == []
    assert not used.home.exists()


def test_a_database_that_was_never_written_can_go(place: Place) -> None:
    place.home.mkdir()
    (place.home / "state.sqlite").touch()
    assert place.type("uninstall", "--yes").code == 0
    assert not place.home.exists()


def test_a_server_is_not_touched(used: Place) -> None:
    ended = used.type("uninstall", environ={"JACKLINE_DATABASE": "postgresql://127.0.0.1:1/runs"})
    assert ended.code == 0
    assert "PostgreSQL is not touched" in ended.err
    assert "127.0.0.1" not in ended.out
