"""`jackline demo` as a real process: killed twice, sent once, nothing left behind, nothing else touched."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jackline.engine import orphans, run_env
from jackline.store.open import open_store
from tests.cli.place import Ended, Place, is_one_line
from tests.support.skips import obey_permissions

ROOT = Path(__file__).parents[2]
ACTS = ("act-one", "act-two")
SECONDS = 120.0
NOWHERE = """
import sys, tempfile
from jackline.cli.main import main
tempfile.tempdir = "/proc/nowhere"
sys.exit(main(["demo"]))
"""


@dataclass(frozen=True)
class Played:
    """A demo that was played to its end."""

    place: Place
    ended: Ended
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def shown(self, run: str) -> dict[str, Any]:
        where = {"JACKLINE_HOME": str(self.home), "JACKLINE_DATABASE": str(self.home / "state.sqlite")}
        return self.place.type("show", run, "--json", environ=where).json


def demo(place: Place, *words: str) -> Ended:
    process = place.start("demo", *words)
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out, err)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.repository.mkdir()
    yield made
    made.close()


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Played once for all tests that only look. The user has settings of their own, which would spoil it."""
    place = Place(tmp_path_factory.mktemp("demo"))
    place.repository.mkdir()
    settings = place.folder / ".config" / "jackline" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('database = "postgresql://127.0.0.1:1/mine"\nmax_calls = 1\n')
    folder = place.folder / "kept here"
    yield Played(place, demo(place, "--keep", str(folder)), folder)
    place.close()


def test_it_succeeds(played: Played) -> None:
    assert (played.ended.code, played.ended.err) == (0, ""), played.ended


def read_outbox(played: Played, act: str) -> list[dict[str, Any]]:
    lines = (played.folder / act / "world" / "outbox.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("act", ACTS)
def test_the_report_arrives_exactly_once(played: Played, act: str) -> None:
    assert [one["name"] for one in read_outbox(played, act)] == ["report"]


@pytest.mark.parametrize(("act", "origin"), [("act-one", "probe"), ("act-two", "agent")])
def test_the_receipt_says_who_knew(played: Played, act: str, origin: str) -> None:
    """In act one only the probe can know that it was sent; in act two the agent sent it after the resume."""
    shown = played.shown(act)
    (sent,) = read_outbox(played, act)
    assert [(one["origin"], one["external_id"]) for one in shown["receipts"]] == [(origin, sent["id"])]
    assert [one["outcome"] for one in shown["attempts"]] == ["lost", "succeeded"]
    assert shown["state"] == "succeeded"


@pytest.mark.parametrize("act", ACTS)
def test_the_work_itself_was_done(played: Played, act: str) -> None:
    assert (played.folder / act / "repository" / "main.txt").read_text() == "half, and whole\n"


@pytest.mark.parametrize("act", ACTS)
def test_no_process_is_left(played: Played, act: str) -> None:
    store = open_store(str(played.home / "state.sqlite"), create=False)
    try:
        mark = run_env.build_process_tag(store.secret, act)
    finally:
        store.close()
    assert orphans.find_orphans(mark) == []


def test_the_users_own_home_is_untouched(played: Played) -> None:
    assert not played.place.home.exists()
    assert sorted(os.listdir(played.place.folder)) == [".config", "kept here", "repository"]
    assert os.listdir(played.place.repository) == []


def test_the_commands_it_shows_can_be_typed(played: Played) -> None:
    """Also with a folder that has a space in its name, by somebody whose settings name another database."""
    shown = played.ended.out.partition("See for yourself:")[2].strip().splitlines()
    commands = [line.strip() for line in shown]
    assert sum(line.startswith("export ") for line in commands) == 2
    ended = played.place.end_of(played.place.execute(["/bin/sh", "-e", "-c", "\n".join(commands)]))
    assert ended.code == 0, ended
    assert "no problems found" in ended.out


def test_the_documentation_shows_what_it_prints(played: Played) -> None:
    block = (ROOT / "docs" / "cli.md").read_text().partition("$ jackline demo\n")[2].partition("```")[0]
    lines = [line for line in block.splitlines() if line.strip()]
    assert len(lines) > 5
    for line in lines:
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        assert re.search(f"^{pattern}$", played.ended.out, re.MULTILINE), line


def test_for_programs_it_is_one_object(place: Place) -> None:
    told = demo(place, "--json", "--keep", place.path("kept")).json
    assert (told["folder"], told["home"]) == (place.path("kept"), place.path("kept/home"))
    assert [(act["run"], act["sent_before_kill"], act["sent"]) for act in told["acts"]] == [
        ("act-one", 1, 1),
        ("act-two", 0, 1),
    ]
    assert [act["receipt"]["origin"] for act in told["acts"]] == ["probe", "agent"]


def test_a_second_time_in_the_same_folder_is_refused(played: Played) -> None:
    before = sorted(path.relative_to(played.folder) for path in played.folder.rglob("*"))
    again = demo(played.place, "--keep", str(played.folder))
    assert (again.code, is_one_line(again)) == (2, True), again
    assert "is not empty" in again.err
    assert sorted(path.relative_to(played.folder) for path in played.folder.rglob("*")) == before


def test_a_folder_with_anything_in_it_is_refused(place: Place) -> None:
    (place.repository / "mine.txt").write_text("mine")
    ended = demo(place, "--keep", ".")
    assert (ended.code, is_one_line(ended), "is not empty" in ended.err) == (2, True, True), ended
    assert os.listdir(place.repository) == ["mine.txt"]


@pytest.mark.parametrize("where", ["file", "file/below", "/proc/demo"])
def test_a_folder_that_cannot_be_made_is_one_line(place: Place, where: str) -> None:
    (place.repository / "file").write_text("")
    ended = demo(place, "--keep", where)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "cannot hold the demo" in ended.err
    assert not place.home.exists()


def test_a_folder_that_cannot_be_written_is_one_line(place: Place) -> None:
    closed = place.folder / "closed"
    closed.mkdir(mode=0o500)
    ended = place.type("demo", "--keep", str(closed), preexec_fn=obey_permissions)
    assert (ended.code, is_one_line(ended)) == (2, True), ended


def test_no_temporary_folder_is_one_line(place: Place) -> None:
    ended = place.end_of(place.python(NOWHERE))
    assert (ended.code, is_one_line(ended)) == (2, True), ended
