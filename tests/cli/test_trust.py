"""`jackline trust`: a project chooses programs only as long as its files are the ones a person has trusted."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from jackline.app import trust
from tests.cli.place import Place, is_one_line

TABLE = '[agents.claude]\nbinary = "/opt/theirs"\n'


@pytest.fixture
def project(place: Place) -> Place:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    (place.repository / "jackline.toml").write_text(TABLE)
    return place


def trusted(place: Place) -> bool:
    return trust.is_trusted(str(place.home), str(place.repository))


def test_untrusted_it_is_refused_and_trusted_it_counts(project: Place) -> None:
    refused = project.type("list")
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert "jackline trust" in refused.err
    said = project.type("trust")
    assert (said.code, said.err) == (0, "")
    assert "jackline.toml" in said.out
    shown = project.type("config", "--json").json["agents.claude.binary"]
    assert shown == {"value": "/opt/theirs", "from": str(project.repository / "jackline.toml")}
    assert os.stat(project.home / "trust.json").st_mode & 0o777 == 0o600
    assert os.stat(project.home).st_mode & 0o777 == 0o700


def test_any_change_of_the_files_ends_it(project: Place) -> None:
    tasks = project.repository / ".agents" / "tasks"
    tasks.mkdir(parents=True)
    changes = (
        lambda: (project.repository / "jackline.toml").write_text(TABLE + "# more\n"),
        lambda: (tasks / "new.md").write_text("new"),
        lambda: (tasks / "new.md").write_text("other"),
        lambda: (tasks / "new.md").rename(tasks / "renamed.md"),
        (tasks / "renamed.md").unlink,
        lambda: (project.repository / ".agents" / "policy.toml").write_text(""),
    )
    for change in changes:
        assert project.type("trust").code == 0
        assert trusted(project)
        change()
        assert not trusted(project)
        assert project.type("trust", "--show", "--json").json["changed"] is True
    assert project.type("list").code == 2


def test_what_runs_leave_there_does_not_matter(project: Place) -> None:
    assert project.type("trust").code == 0
    left = project.repository / ".agents" / "runs" / "one"
    left.mkdir(parents=True)
    (left / "log").write_text("much")
    assert trusted(project)


def test_it_can_be_taken_back_from_anywhere_in_the_project(project: Place) -> None:
    below = project.repository / "below"
    below.mkdir()
    assert project.type("trust", cwd=below).code == 0
    assert trusted(project)
    assert project.type("trust", "--revoke", "--json", cwd=below).json["trusted"] is False
    assert not trusted(project)
    assert project.type("trust", "--revoke").code == 0


def test_showing_writes_nothing(project: Place) -> None:
    shown = project.type("trust", "--show", "--json").json
    assert (shown["trusted"], shown["changed"], shown["files"]) == (False, False, ["jackline.toml"])
    assert not project.home.exists()


def test_one_project_is_not_another(project: Place) -> None:
    assert project.type("trust").code == 0
    other = project.folder / "other"
    other.mkdir()
    (other / ".git").mkdir()
    (other / "jackline.toml").write_text(TABLE)
    assert project.type("list", cwd=other).code == 2
    assert not trust.is_trusted(str(project.folder / "another home"), str(project.repository))


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"PROJECT": 3}', '{"PROJECT": {"digest": null}}'])
def test_a_damaged_note_trusts_nobody(project: Place, damage: str) -> None:
    project.home.mkdir()
    (project.home / "trust.json").write_text(damage.replace("PROJECT", str(project.repository)))
    assert not trusted(project)
    assert project.type("trust").code == 0
    assert trusted(project)
    assert list(json.loads((project.home / "trust.json").read_text())) == [str(project.repository)]


def test_what_cannot_be_held_to_account_is_not_trusted(project: Place) -> None:
    folder = project.repository / ".agents"
    folder.mkdir()
    (folder / "tasks").symlink_to(project.folder)
    linked = project.type("trust")
    assert (linked.code, is_one_line(linked)) == (2, True)
    (folder / "tasks").unlink()
    os.mkfifo(folder / "pipe")
    piped = project.type("trust")
    assert (piped.code, is_one_line(piped)) == (2, True)


def test_nothing_to_trust(place: Place) -> None:
    ended = place.type("trust")
    assert (ended.code, is_one_line(ended)) == (2, True)
