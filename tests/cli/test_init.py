"""`jackline init`: writes missing files, keeps existing ones, and changes nothing the second time."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from jackline.app import config, init, setting_keys
from jackline.files import create_file
from tests.cli.place import Place, is_one_line
from tests.cli.test_terminal import Terminal


def tree(place: Place) -> dict[str, bytes]:
    files = (path for path in place.repository.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(place.repository)): path.read_bytes() for path in files}


def test_a_repository_is_prepared_once(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    below = place.repository / "below"
    below.mkdir()
    first = place.type("init", "--skills", cwd=below)
    assert [line.split()[0] for line in first.out.splitlines()] == ["wrote"] * 6
    assert (place.repository / ".agents" / "tasks").is_dir()
    assert (place.repository / ".gitignore").read_text() == ".agents/runs/\n"
    before = tree(place)
    again = place.type("init", "--skills")
    assert [line.split()[0] for line in again.out.splitlines()] == ["left"] * 6
    assert tree(place) == before
    assert place.type("list").code == 0  # what was written can be read
    assert not place.home.exists()


def test_without_a_terminal_no_skills_are_written_unasked(place: Place) -> None:
    ended = place.type("init")
    assert "jackline init --skills" in ended.err
    assert not (place.repository / ".agents" / "skills").exists()
    assert place.type("init", "--no-skills", "--agents-md").code == 2
    assert place.type("init", "--skills").err == place.type("init").err == ""


@pytest.mark.parametrize(("answer", "written"), [(b"n\n", False), (b"y\n", True), (b"\x04", False)])
def test_at_a_terminal_it_asks_before_it_writes_skills(place: Place, answer: bytes, written: bool) -> None:
    terminal = Terminal(place, "init")
    terminal.until(r"Write skills .*\[Y/n\]")
    assert not (place.repository / ".agents" / "skills").exists()
    os.write(terminal.ours, answer)
    terminal.end()
    assert (place.repository / ".agents" / "skills" / "commit" / "SKILL.md").exists() is written


def test_what_somebody_wrote_stays(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    (place.repository / "jackline.toml").write_text("max_steps = 9\n")
    (place.repository / ".gitignore").write_bytes(b"*.pyc\r\nno newline at the end")
    assert place.type("init", "--json").json["steps"][0]["wrote"] is False
    assert (place.repository / "jackline.toml").read_text() == "max_steps = 9\n"
    assert (place.repository / ".gitignore").read_bytes() == b"*.pyc\r\nno newline at the end\r\n.agents/runs/\r\n"


def test_without_git_nothing_is_ignored(place: Place) -> None:
    assert place.type("init").code == 0
    assert not (place.repository / ".gitignore").exists()


def test_every_line_of_the_file_is_right_without_its_comment_sign(tmp_path: Path) -> None:
    lines = [line.removeprefix("# ") for line in init.render_settings().splitlines() if " = " in line]
    settings = tomllib.loads("\n".join(line for line in lines if not line.startswith(("model", "arguments"))))
    assert settings == {key.name: key.default for key in setting_keys.KEYS if key.project}
    (tmp_path / "jackline.toml").write_text(init.render_settings())
    loaded = config.load_config({"HOME": str(tmp_path)}, str(tmp_path))
    assert set(loaded.sources.values()) == {"default"}


def test_a_folder_that_cannot_be_written(place: Place) -> None:
    (place.repository / ".agents").write_text("a file in its place")
    ended = place.type("init")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert ".agents" in ended.err


@pytest.mark.parametrize(
    "name",
    [
        ".gitignore",
        ".agents",
        ".agents/tasks",
        ".agents/skills",
        ".agents/skills/commit",
        ".agents/skills/jackline/SKILL.md",
        "AGENTS.md",
        "jackline.toml",
    ],
)
def test_nothing_is_written_through_a_link(place: Place, name: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    outside = place.folder / "outside"
    outside.write_text("mine") if name.endswith((".md", ".toml", ".gitignore")) else outside.mkdir()
    link = place.repository / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    ended = place.type("init", "--agents-md")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "is a link" in ended.err
    assert outside.read_text() == "mine" if outside.is_file() else not list(outside.iterdir())


def test_a_pipe_is_not_waited_for(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    os.mkfifo(place.repository / ".gitignore")
    ended = place.type("init")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert ended.err.endswith("/.gitignore is not a regular file\n")


# --- skills --------------------------------------------------------------------------------------------------


def skill(place: Place, name: str) -> Path:
    return place.repository / ".agents" / "skills" / name / "SKILL.md"


def test_the_skills_are_written_as_they_are_shipped(place: Place) -> None:
    assert place.type("init", "--skills").code == 0
    for name in init.SKILL_NAMES:
        assert skill(place, name).read_text() == init.read_skill(name)
    assert not (place.repository / "AGENTS.md").exists()


def test_a_skill_that_somebody_edited_stays(place: Place) -> None:
    skill(place, "commit").parent.mkdir(parents=True)
    skill(place, "commit").write_text("my own")
    ended = place.type("init", "--skills")
    said = {line.rpartition(" ")[2]: line.split()[0] for line in ended.out.splitlines() if "the skill" in line}
    assert said == {"jackline": "wrote", "pre-land-review": "wrote", "commit": "left"}
    assert skill(place, "commit").read_text() == "my own"


def test_many_at_once_write_each_thing_once(place: Place) -> None:
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    ends = [place.end_of(one) for one in [place.start("init", "--agents-md") for _ in range(6)]]
    assert [one.code for one in ends] == [0] * 6, ends
    for name in init.SKILL_NAMES:
        assert sum("wrote" in line for one in ends for line in one.out.splitlines() if f"skill {name}" in line) == 1
    assert (place.repository / "AGENTS.md").read_text().count(init.BEGIN) == 1
    assert (place.repository / ".gitignore").read_text() == ".agents/runs/\n"
    assert sum(".gitignore" in line and "wrote" in line for one in ends for line in one.out.splitlines()) == 1
    assert not list(place.repository.rglob("*.unfinished"))


# --- AGENTS.md -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "end"),
    [
        (b"", b"\n"),
        (b"# Rules\r\nno newline at the end", b"\r\n"),
        (b"# Rules\r\n\r\n", b"\r\n"),
        (b"# Rules\n", b"\n"),
        (b"\xff not text\n\n", b"\n"),
    ],
)
def test_the_pointer_is_added_once_and_the_rest_stays(place: Place, before: bytes, end: bytes) -> None:
    """In the file's own line ends, after one empty line."""
    path = place.repository / "AGENTS.md"
    path.write_bytes(before)
    assert "wrote" in place.type("init", "--agents-md").out.splitlines()[-1]
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.removeprefix(before).strip().startswith(init.BEGIN.encode())
    assert after.endswith(init.END.encode() + end)
    assert set(re.findall(rb"\r?\n", after)) == {end}
    assert not before or (after.count(end * 2 + init.BEGIN.encode()), after.count(end * 3)) == (1, 0)
    assert "left" in place.type("init", "--agents-md").out.splitlines()[-1]
    assert path.read_bytes() == after


def test_changes_between_the_markers_are_kept(place: Place) -> None:
    place.type("init", "--agents-md")
    path = place.repository / "AGENTS.md"
    path.write_text(f"mine\n{init.BEGIN}\nin my words\n{init.END}\nmine too")
    assert place.type("init", "--agents-md", "--json").json["steps"][-1]["wrote"] is False
    assert path.read_text() == f"mine\n{init.BEGIN}\nin my words\n{init.END}\nmine too"


def test_what_is_no_file_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.repository / "AGENTS.md")
    ended = place.type("init", "--agents-md")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert ended.err.endswith("/AGENTS.md is not a regular file\n")


def test_a_file_that_cannot_be_written_is_named_as_it_would_be(tmp_path: Path) -> None:
    path = str(tmp_path / "missing" / "jackline.toml")
    with pytest.raises(FileNotFoundError) as caught:
        create_file(path, "words")
    assert caught.value.filename == path


# --- trust ---------------------------------------------------------------------------------------------------


def test_a_project_that_was_trusted_has_to_be_trusted_again(place: Place) -> None:
    place.task("mine")
    assert place.trust().code == 0
    first = place.type("init", "--skills")
    assert "jackline trust" in first.out.splitlines()[-1]
    assert place.type("trust", "--show", "--json").json["changed"] is True
    assert place.trust().code == 0
    again = place.type("init", "--agents-md", "--json").json  # AGENTS.md is not one of the trusted files
    assert again["trust_ended"] is False
    assert place.type("trust", "--show", "--json").json["trusted"] is True


def test_trust_is_not_mentioned_in_an_untrusted_project(place: Place) -> None:
    assert "jackline trust" not in place.type("init", "--skills").out
    assert place.type("init", "--json").json["trust_ended"] is False
