"""`jackline init`: what is missing is written, what is there stays, and doing it again changes nothing."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from jackline.app import config, keys, scaffold
from tests.cli.place import Place, is_one_line


def tree(place: Place) -> dict[str, bytes]:
    files = (path for path in place.repository.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(place.repository)): path.read_bytes() for path in files}


def test_a_repository_is_prepared_once(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    below = place.repository / "below"
    below.mkdir()
    first = place.type("init", cwd=below)
    assert [line.split()[0] for line in first.out.splitlines()] == ["wrote", "wrote", "wrote"]
    assert (place.repository / ".agents" / "tasks").is_dir()
    assert (place.repository / ".gitignore").read_text() == ".agents/runs/\n"
    before = tree(place)
    again = place.type("init")
    assert [line.split()[0] for line in again.out.splitlines()] == ["left", "left", "left"]
    assert tree(place) == before
    assert place.type("list").code == 0  # what was written can be read
    assert not place.home.exists()


def test_what_somebody_wrote_stays(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    (place.repository / "jackline.toml").write_text("max_steps = 9\n")
    (place.repository / ".gitignore").write_bytes(b"*.pyc\r\nno newline at the end")
    assert place.type("init", "--json").json["steps"][0]["wrote"] is False
    assert (place.repository / "jackline.toml").read_text() == "max_steps = 9\n"
    assert (place.repository / ".gitignore").read_bytes() == b"*.pyc\r\nno newline at the end\n.agents/runs/\n"


def test_without_git_nothing_is_ignored(place: Place) -> None:
    assert place.type("init").code == 0
    assert not (place.repository / ".gitignore").exists()


def test_every_line_of_the_file_is_right_without_its_comment_sign(tmp_path: Path) -> None:
    lines = [line.removeprefix("# ") for line in scaffold.settings_text().splitlines() if " = " in line]
    settings = tomllib.loads("\n".join(line for line in lines if not line.startswith(("model", "arguments"))))
    assert settings == {key.name: key.default for key in keys.KEYS if key.project}
    (tmp_path / "jackline.toml").write_text(scaffold.settings_text())
    loaded = config.load({"HOME": str(tmp_path)}, str(tmp_path))
    assert set(loaded.sources.values()) == {"default"}


def test_a_folder_that_cannot_be_written(place: Place) -> None:
    (place.repository / ".agents").write_text("a file in its place")
    ended = place.type("init")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert ".agents" in ended.err


@pytest.mark.parametrize("name", [".gitignore", ".agents", ".agents/tasks", "jackline.toml"])
def test_nothing_is_written_through_a_link(place: Place, name: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    outside = place.folder / "outside"
    outside.write_text("mine") if "." in name.lstrip(".") or name == ".gitignore" else outside.mkdir()
    link = place.repository / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside)
    ended = place.type("init")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "is a link" in ended.err
    assert outside.read_text() == "mine" if outside.is_file() else not list(outside.iterdir())


def test_a_pipe_is_not_waited_for(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    os.mkfifo(place.repository / ".gitignore")
    ended = place.type("init")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
