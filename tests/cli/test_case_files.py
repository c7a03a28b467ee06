"""The files of a case: derived from the store, repaired, never trusted, and never outside the repository."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place

LISTS = ("hypotheses.jsonl", "evidence.jsonl", "commands.jsonl", "learning.jsonl")
DIE_BEFORE_FILES = """
import os, signal, sys
from jackline.features.cases import case_files
case_files.update_case = lambda home, case_id: os.kill(os.getpid(), signal.SIGKILL)
from jackline.cli.main import main
main(sys.argv[1:])
"""
DIE_IN_APPEND = """
import os, signal, sys
from jackline.features.cases import case_files
whole = case_files._append
def half(path, data):
    whole(path, data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
case_files._append = half
from jackline.cli.main import main
main(sys.argv[1:])
"""
MANY = """
import os, sys
from jackline.features.cases import entries
from jackline.app.home import open_home
from jackline.exports import rebuild
rebuild.rebuild_once.__defaults__ = (60.0,)  # on a busy machine a slow one is not a stopped one
with open_home() as home:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[2])):
        entries.add_hypothesis(home, f"{sys.argv[1]}-{number}")
    assert not home.warnings, home.warnings
"""


def begin(place: Place, *words: str) -> Path:
    ended = place.type("case", "start", "mend it", *words, "--json")
    assert ended.code == 0, ended
    return place.repository / ".agents" / "runs" / str(ended.json["id"])


def do(place: Place, *words: str, **more: Any) -> Ended:
    ended = place.type("case", *words, **more)
    assert ended.code == 0, ended
    return ended


def texts(folder: Path, name: str = "hypotheses.jsonl") -> list[str]:
    return [json.loads(line)["text"] for line in (folder / name).read_text().splitlines()]


def test_files_are_the_owners_alone_and_ignored_by_git(place: Place) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    for path in (folder.parent, folder):
        assert path.stat().st_mode & 0o777 == 0o700
    for path in (*folder.iterdir(), folder.parent / "ACTIVE", folder.parent / ".gitignore"):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert (folder.parent / ".gitignore").read_text() == "*\n"
    subprocess.run(["git", "init", "-q"], cwd=place.repository, check=True)
    seen = subprocess.run(
        ["git", "status", "--porcelain"], cwd=place.repository, check=True, capture_output=True, text=True
    )
    assert seen.stdout == ""
    assert [path for path in folder.iterdir() if path.name.endswith(".tmp")] == []


def test_what_is_only_added_is_appended_to_the_same_file(place: Place) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    first = (folder / "hypotheses.jsonl").stat().st_ino, (folder / "problem.json").stat().st_mtime_ns
    do(place, "hypothesis", "add", "b")
    do(place, "evidence", "add", "seen")
    assert ((folder / "hypotheses.jsonl").stat().st_ino, (folder / "problem.json").stat().st_mtime_ns) == first
    assert texts(folder) == ["a", "b"]
    do(place, "hypothesis", "resolve", "H001", "--status", "accepted")
    lines = [json.loads(line) for line in (folder / "hypotheses.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["accepted", "open"]


@pytest.mark.parametrize("words", [("status",), ("evidence", "add", "more"), ("files",)])
def test_edited_or_removed_files_are_written_again(place: Place, words: tuple[str, ...]) -> None:
    folder = begin(place)
    for text in ("a", "b"):
        do(place, "hypothesis", "add", text)
    kept = {name: (folder / name).read_bytes() for name in (*LISTS, "problem.json")}
    (folder / "hypotheses.jsonl").write_bytes(kept["hypotheses.jsonl"].replace(b'"a"', b'"x"'))  # of the same size
    (folder / "problem.json").unlink()
    (folder / "learning.jsonl").write_text("no JSON")
    (folder / "closeout.json").write_text("{}")
    (folder.parent / "ACTIVE").write_text("../../elsewhere\n")
    do(place, *words)
    for name in ("hypotheses.jsonl", "problem.json", "learning.jsonl"):
        assert (folder / name).read_bytes() == kept[name], name
    assert not (folder / "closeout.json").exists()
    assert (folder.parent / "ACTIVE").read_text().strip() == folder.name


def test_the_content_of_a_file_is_never_trusted(place: Place) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    (folder.parent / "ACTIVE").write_text("another\n")
    (folder / ".built").write_text('{"seq": 99, "lines": {"hypotheses.jsonl": 7}, "marks": {}}')
    assert do(place, "hypothesis", "add", "b").out == "H002 open\n"
    assert texts(folder) == ["a", "b"]
    (folder / ".built").write_text("[" * 10_000)
    assert do(place, "hypothesis", "add", "c").out == "H003 open\n"
    assert texts(folder) == ["a", "b", "c"]
    for name, odd in (("seq", "Infinity"), ("seq", "-1"), ("lines", '{"hypotheses.jsonl": -5}')):
        built = json.loads((folder / ".built").read_text())
        (folder / ".built").write_text(json.dumps({**built, name: "odd"}).replace('"odd"', odd))
        do(place, "hypothesis", "add", "d")
        assert texts(folder)[3:] == ["d"] * (len(texts(folder)) - 3), odd
    assert len(texts(folder)) == 6


def test_a_whole_folder_that_is_gone_comes_back(place: Place) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    for path in sorted(folder.parent.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert do(place, "files").out == f"{folder}\n"
    assert texts(folder) == ["a"]
    assert (folder.parent / "ACTIVE").exists()
    assert do(place, "files", "--json").json == {"folder": str(folder)}


@pytest.mark.parametrize("program", [DIE_BEFORE_FILES, DIE_IN_APPEND])
def test_killed_after_the_commit_the_files_follow_later(place: Place, program: str) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    killed = place.end_of(place.python(program, "case", "hypothesis", "add", "b"))
    assert killed.code == -signal.SIGKILL
    assert (folder / "hypotheses.jsonl").read_text().count("\n") == 1
    assert [one["text"] for one in do(place, "hypothesis", "list", "--json").rows] == ["a", "b"]
    do(place, "status")
    assert texts(folder) == ["a", "b"]
    assert do(place, "hypothesis", "add", "c").out == "H003 open\n"
    assert texts(folder) == ["a", "b", "c"]


@pytest.mark.parametrize("name", [".agents", ".agents/runs"])
def test_no_folder_is_written_through_a_link(place: Place, name: str) -> None:
    elsewhere = place.folder / "elsewhere"
    elsewhere.mkdir()
    link = place.repository / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    ended = place.type("case", "start", "mend it")
    assert ended.code == 0
    assert "is a link" in ended.err
    assert "the case itself is safe" in ended.err
    assert list(elsewhere.iterdir()) == []
    assert do(place, "hypothesis", "add", "a").out == "H001 open\n"
    again = place.type("case", "files")
    assert (again.code, "is a link" in again.err) == (1, True)


@pytest.mark.parametrize("name", [*LISTS, "problem.json", ".built", ".lock", "../ACTIVE", "../.lock"])
def test_no_file_is_written_through_a_link(place: Place, name: str) -> None:
    folder = begin(place)
    target = place.folder / "target"
    (folder / name).unlink()
    (folder / name).symlink_to(target)
    ended = place.type("case", "hypothesis", "add", "a")
    assert (ended.code, ended.out) == (0, "H001 open\n")
    assert "is a link" in ended.err
    assert not target.exists()
    (folder / name).unlink()
    do(place, "status")
    assert texts(folder) == ["a"]


def test_where_files_cannot_be_written_the_case_goes_on(place: Place) -> None:
    (place.repository / ".agents").write_text("a file in the way")
    ended = place.type("case", "start", "mend it", "--json")
    assert ended.code == 0
    assert "cannot be written" in ended.json["warnings"][0]
    noted = place.type("case", "hypothesis", "add", "a")
    assert (noted.code, noted.out, len(noted.err.splitlines())) == (0, "H001 open\n", 1)
    failed = place.type("case", "files")
    assert (failed.code, "Traceback" in failed.err) == (1, False)
    os.unlink(place.repository / ".agents")
    folder = Path(do(place, "files").out.strip())
    assert texts(folder) == ["a"]


@pytest.mark.parametrize("name", ["ACTIVE", ".built"])
def test_a_folder_in_place_of_a_file_is_reported_and_the_case_continues(place: Place, name: str) -> None:
    folder = begin(place)
    path = (folder.parent if name == "ACTIVE" else folder) / name
    path.unlink()
    path.mkdir()
    for words in (("hypothesis", "add", "one more"), ("status",)):
        ended = do(place, *words)
        assert f"{name} cannot be written" in ended.err, ended
    assert do(place, "hypothesis", "list", "--json").rows[0]["text"] == "one more"


def test_a_file_edited_with_restored_times_is_written_again(place: Place) -> None:
    folder = begin(place)
    do(place, "hypothesis", "add", "a")
    path = folder / "hypotheses.jsonl"
    seen = path.stat()
    path.write_text(path.read_text().replace('"a"', '"z"'))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    do(place, "status")
    assert texts(folder) == ["a"]


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(place: Place) -> None:
    folder = begin(place)
    for name in (".built", "evidence.jsonl"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    ended = do(place, "hypothesis", "add", "a")
    assert (ended.out, "not up to date" in ended.err) == ("H001 open\n", True)


def test_a_repository_that_is_gone_leaves_the_case_readable(place: Place) -> None:
    folder = begin(place)
    moved = place.folder / "moved"
    place.repository.rename(moved)
    shown = place.type("case", "status", "--case", folder.name, cwd=place.folder)
    assert shown.code == 0
    assert "does not exist" in shown.err
    moved.rename(place.repository)


@pytest.mark.parametrize(
    ("processes", "each"), [(4, 25), pytest.param(8, 1000, marks=pytest.mark.full)], ids=["few", "many"]
)
@pytest.mark.parametrize("backend", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_many_processes_leave_whole_files(
    place: Place, backend: str, processes: int, each: int, request: pytest.FixtureRequest
) -> None:
    if backend == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    folder = begin(place)
    writers = [place.python(MANY, str(one), str(each), stdin=subprocess.PIPE) for one in range(processes)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, err = writer.communicate(timeout=600)
        assert (writer.returncode, err) == (0, "")
    lines = [json.loads(line) for line in (folder / "hypotheses.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"H{number:03}" for number in range(1, processes * each + 1)]
    assert {line["text"] for line in lines} == {f"{one}-{n}" for one in range(processes) for n in range(each)}
    assert do(place, "status", "--json").json["counts"]["hypothesis"] == processes * each
    assert place.type("db", "check").code == 0
