"""`jackline scaffold`: creates an instance once, keeps edited files, and creates nothing from a broken package."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jackline
from jackline.store import bundle, schema
from tests.cli.place import Ended, Place, is_one_line

NAMES = ("--host", "grove", "--agent", "forge")
FILES = {"state.sqlite", "dashboard.md", "CLAUDE.md", "persona.md", "context/repos.md", "context/channels.md"}
EDITED = sorted(FILES - {"state.sqlite", "dashboard.md"})
LATEST = f"{schema.get_latest_version():04d}"


def instance(place: Place) -> Path:
    return place.folder / ".config" / "grove" / "agents" / "forge"


def scaffold(place: Place, *words: str, **more: Any) -> Ended:
    return place.type("scaffold", *words, *NAMES, **more)


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("state.sqlite"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


# --- laying it down ------------------------------------------------------------------------------------------


def test_the_layout(place: Place) -> None:
    ended = scaffold(place)
    folder = instance(place)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == f"wrote {folder}: the instance of agent forge on host grove"
    assert lines[1] == f"state.sqlite created (applied 0001…{LATEST})"
    assert {line.removeprefix("wrote ") for line in lines[2:]} == FILES - {"state.sqlite"} | {
        "runs/", "retros/", "context/",
    }  # fmt: skip
    beside = {path.name for path in folder.rglob("*") if path.is_file()} - {os.path.basename(name) for name in FILES}
    assert all(name.startswith(("state.sqlite", ".dashboard.md.lock")) for name in beside), beside
    assert "forge" in (folder / "CLAUDE.md").read_text()
    assert "<" not in (folder / "CLAUDE.md").read_text()  # every placeholder was replaced
    assert not place.home.exists()  # no other home was created


def test_it_is_a_home(place: Place) -> None:
    folder = place.folder / "there"
    assert scaffold(place, str(folder)).code == 0
    listed = place.type("list", "--home", str(folder))
    assert listed.code == 0
    assert place.type("db", "check", environ={"JACKLINE_HOME": str(folder)}).out == "no problems found\n"
    assert place.type("db", "migrate", "--home", str(folder)).out.startswith("the schema is up to date")


def test_only_its_owner_may_read_it(place: Place) -> None:
    previous = os.umask(0)
    try:
        assert scaffold(place).code == 0
    finally:
        os.umask(previous)
    for path in (instance(place), *instance(place).rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_doing_it_again_changes_nothing(place: Place) -> None:
    scaffold(place)
    before = files(instance(place))
    again = scaffold(place, "--strict")
    assert again.code == 0
    assert again.out.splitlines()[1] == "state.sqlite present"
    assert {line.split()[0] for line in again.out.splitlines()} == {"left", "state.sqlite"}
    assert files(instance(place)).keys() == before.keys()
    assert {name: files(instance(place))[name] for name in EDITED} == {name: before[name] for name in EDITED}


def test_what_a_person_wrote_stays(place: Place) -> None:
    scaffold(place)
    folder = instance(place)
    for name in EDITED:
        (folder / name).write_text(f"my own {name}")
    (folder / "retros" / "2026-W46.md").write_text("my own retro")
    (folder / "persona.md").unlink()
    (folder / "persona.md").write_text("")  # emptied on purpose is edited, too
    ended = scaffold(place)
    assert "left  persona.md" in ended.out
    assert (folder / "persona.md").read_text() == ""
    assert (folder / "CLAUDE.md").read_text() == "my own CLAUDE.md"
    assert (folder / "retros" / "2026-W46.md").read_text() == "my own retro"


def test_what_is_missing_comes_back(place: Place) -> None:
    scaffold(place)
    shutil.rmtree(instance(place) / "context")
    ended = scaffold(place)
    assert "wrote context/repos.md" in ended.out
    assert "left  CLAUDE.md" in ended.out


def test_migrations_of_a_later_jackline_are_reported(place: Place) -> None:
    scaffold(place)
    old = instance(place) / "state.sqlite"
    for path in instance(place).glob("state.sqlite*"):
        path.unlink()
    program = (
        "import sys; from jackline.store import schema; from jackline.store.sqlite import SqliteDriver\n"
        "driver = SqliteDriver(sys.argv[1], create=True)\n"
        "schema.migrate(driver, 1, upto=schema.get_latest_version() - 1)\n"
        "driver.close()\n"
    )
    assert place.end_of(place.python(program, str(old))).code == 0
    assert scaffold(place).out.splitlines()[1] == f"state.sqlite present (applied {LATEST})"
    assert scaffold(place).out.splitlines()[1] == "state.sqlite present"


def test_as_json_one_line_for_each_thing(place: Place) -> None:
    rows = scaffold(place, "--json").rows
    assert {row["name"] for row in rows} >= FILES
    database = next(row for row in rows if row["name"] == "state.sqlite")
    assert database["path"] == str(instance(place) / "state.sqlite")
    assert database["applied"][0] == "0001_runs"
    assert all(row["wrote"] for row in rows)
    assert not any(row["wrote"] for row in scaffold(place, "--json").rows)


def test_many_at_once_lay_down_one(place: Place) -> None:
    ends = [place.end_of(one) for one in [place.start("scaffold", *NAMES) for _ in range(6)]]
    assert [one.code for one in ends] == [0] * 6, ends
    for name in EDITED:
        assert sum(f"wrote {name}" in one.out for one in ends) == 1, name
    assert not list(instance(place).rglob("*.unfinished"))


# --- where it lies -------------------------------------------------------------------------------------------


def test_the_default_folder_follows_xdg(place: Place) -> None:
    ended = scaffold(place, environ={"XDG_CONFIG_HOME": str(place.folder / "xdg")})
    assert str(place.folder / "xdg" / "grove" / "agents" / "forge") in ended.out.splitlines()[0]
    assert not instance(place).exists()


def test_the_flag_for_the_home_names_the_folder_as_well(place: Place) -> None:
    there = str(place.folder / "there")
    assert there in scaffold(place, "--home", there).out
    assert scaffold(place, there, "--home", there).code == 0
    both = scaffold(place, str(place.folder / "other"), "--home", there)
    assert (both.code, is_one_line(both)) == (2, True)


def test_another_database_in_the_settings_is_reported(place: Place) -> None:
    ended = scaffold(place, environ={"JACKLINE_DATABASE": str(place.folder / "elsewhere.sqlite")})
    assert ended.code == 0
    assert "JACKLINE_DATABASE" in ended.err
    assert (instance(place) / "state.sqlite").exists()
    assert not (place.folder / "elsewhere.sqlite").exists()


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--host", "--agent"])
@pytest.mark.parametrize("name", ["", ".", "..", "../up", "a/b", "/etc", "a b", "-x", "a\nb", "é", "n" * 65, "a..b"])
def test_a_name_must_be_a_plain_one(place: Place, flag: str, name: str) -> None:
    words = dict(zip(NAMES[::2], NAMES[1::2], strict=True)) | {flag: name}
    ended = place.type("scaffold", *(f"{key}={value}" for key, value in words.items()))
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert not (place.folder / ".config").exists()


def test_both_names_are_needed(place: Place) -> None:
    for words in (("--host", "grove"), ("--agent", "forge"), ()):
        ended = place.type("scaffold", *words)
        assert (ended.code, is_one_line(ended)) == (2, True), ended


@pytest.mark.parametrize("names", [("--host", "pilot", "--agent", "forge"), ("--host", "grove", "--agent", "other")])
def test_an_instance_keeps_its_names(place: Place, names: tuple[str, ...]) -> None:
    scaffold(place)
    before = files(instance(place))
    ended = place.type("scaffold", str(instance(place)), *names)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "agent forge on host grove" in ended.err
    assert files(instance(place)) == before


def test_a_home_that_has_no_name_yet_gets_one(place: Place) -> None:
    assert place.type("db", "migrate").code == 0
    assert "state.sqlite present" in scaffold(place, str(place.home)).out
    assert place.type("scaffold", str(place.home), "--host", "pilot", "--agent", "x").code == 2


def test_a_file_in_the_place_of_the_folder(place: Place) -> None:
    (place.folder / "there").write_text("mine")
    for words in (str(place.folder / "there"), str(place.folder / "there" / "below")):
        ended = scaffold(place, words)
        assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert (place.folder / "there").read_text() == "mine"


def test_a_folder_that_cannot_be_written(place: Place) -> None:
    ended = scaffold(place, "/proc/nowhere/forge")
    assert (ended.code, is_one_line(ended)) == (2, True), ended


def test_a_database_of_a_newer_jackline_stops_it_before_any_file(place: Place) -> None:
    scaffold(place)
    connection = sqlite3.connect(instance(place) / "state.sqlite")
    connection.execute(f"PRAGMA user_version = {schema.get_latest_version() + 1:d}")
    connection.close()
    (instance(place) / "persona.md").unlink()
    ended = scaffold(place)
    assert (ended.code, is_one_line(ended)) == (1, True), ended
    assert "upgrade jackline" in ended.err
    assert not (instance(place) / "persona.md").exists()


def test_a_database_of_another_system_is_left_untouched(place: Place) -> None:
    instance(place).mkdir(parents=True)
    path = instance(place) / "state.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE work_items (id TEXT)")
    connection.close()
    before = path.read_bytes()
    ended = scaffold(place)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "jackline import" in ended.err
    assert path.read_bytes() == before
    assert [one.name for one in instance(place).iterdir() if one.name != "state.sqlite.gate"] == ["state.sqlite"]


def test_a_folder_of_no_name_is_not_the_default(place: Place) -> None:
    """A host whose variable is empty must not find its agent elsewhere."""
    ended = place.type("scaffold", "", "--host", "grove", "--agent", "forge")
    assert (ended.code, is_one_line(ended), "DIR is empty" in ended.err) == (2, True, True), ended


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_database_that_is_no_file_is_not_waited_for(place: Place, make: Callable[[str], None]) -> None:
    instance(place).mkdir(parents=True)
    make(str(instance(place) / "state.sqlite"))
    ended = scaffold(place)
    assert (ended.code, is_one_line(ended), "is not a regular file" in ended.err) == (1, True, True), ended


@pytest.mark.parametrize("name", ["state.sqlite", "dashboard.md", "retros", "context", "context/repos.md", "CLAUDE.md"])
def test_nothing_is_written_through_a_link(place: Place, name: str) -> None:
    outside = place.folder / "outside"
    outside.mkdir() if name in {"retros", "context"} else outside.write_text("mine")
    link = instance(place) / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    ended = scaffold(place)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "is a link" in ended.err
    assert outside.read_text() == "mine" if outside.is_file() else not list(outside.iterdir())


# --- strict --------------------------------------------------------------------------------------------------


def test_the_list_of_migrations_is_that_of_the_folder() -> None:
    assert sorted(bundle.FILES) == sorted(name for name in os.listdir(schema.FOLDER) if name.endswith(".sql"))


@pytest.fixture
def package(place: Place) -> Path:
    """A copy of the package, to be damaged; gives back its migrations."""
    copy = place.folder / "copy" / "jackline"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(jackline.__file__).parent, copy, ignore=ignored)
    return copy / "store" / "migrations"


def of_copy(place: Place, package: Path, *words: str) -> Ended:
    argv = [sys.executable, "-P", "-m", "jackline", "scaffold", *words, *NAMES]
    environ = {"PYTHONPATH": str(package.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    return place.end_of(place.execute(argv, environ=environ))


def test_a_whole_copy_is_fine(place: Place, package: Path) -> None:
    assert of_copy(place, package, "--strict").code == 0


@pytest.mark.parametrize("name", ["0001_runs.sql", "0002_ledger.sqlite.sql", "0003_outbox.sql", bundle.FILES[-1]])
@pytest.mark.parametrize("damage", ["missing", "empty", "blank", "comment"])
def test_a_damaged_package_is_found_before_anything_is_created(
    place: Place, package: Path, name: str, damage: str
) -> None:
    path = package / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_text({"empty": "", "blank": " \n\n", "comment": "-- nothing\n"}[damage])
    ended = of_copy(place, package, "--strict")
    assert (ended.code, is_one_line(ended)) == (3, True), ended
    assert str(path) in ended.err
    assert ("missing" if damage == "missing" else "empty") in ended.err
    assert not (place.folder / ".config").exists()
    assert not place.home.exists()


def test_a_folder_of_migrations_that_is_gone(place: Place, package: Path) -> None:
    shutil.rmtree(package)
    ended = of_copy(place, package, "--strict", "--json")
    assert (ended.code, ended.json["exit_code"]) == (3, 3), ended


def test_a_gap_before_a_file_that_was_added(place: Place, package: Path) -> None:
    (package / f"{schema.get_latest_version() + 2:04d}_late.sql").write_text("SELECT 1;\n")
    ended = of_copy(place, package, "--strict")
    assert (ended.code, is_one_line(ended)) == (3, True), ended
    assert f"{schema.get_latest_version() + 1:04d}_" in ended.err


def test_an_existing_instance_is_not_opened_either(place: Place, package: Path) -> None:
    scaffold(place)
    before = (instance(place) / "state.sqlite").read_bytes()
    (package / "0003_outbox.sql").write_text("")
    assert of_copy(place, package, "--strict").code == 3
    assert (instance(place) / "state.sqlite").read_bytes() == before
    assert not (instance(place) / "state.sqlite-wal").exists()


def test_a_killed_scaffold_is_finished_by_the_next(place: Place) -> None:
    """Killed at every moment that shows in the folder: what is there is whole, and the next one does the rest."""
    for name in (*EDITED, "dashboard.md"):
        process = place.start("scaffold", *NAMES)
        while process.poll() is None and not (instance(place) / name).exists():
            pass
        process.kill()
        process.wait()
        ended = scaffold(place)
        assert ended.code == 0, ended
        assert all((instance(place) / one).read_text() for one in EDITED)
        shutil.rmtree(instance(place))
