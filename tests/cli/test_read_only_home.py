"""Commands that only read work on a home that cannot be written; others say so in one line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND, Ended, Place, is_one_line

READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
READING = (
    ("list",),
    ("list", "--state", "lost", "--all-repos"),
    ("show", "r"),
    ("show", "r", "--json"),
    ("logs", "r"),
    ("logs", "r", "--events"),
    ("logs", "-f", "r"),
    ("bridge", "r"),
    ("receipts", "r"),
    ("verify", "r"),
    ("dashboard", "--print"),
    ("inbox",),
    ("events", "tail"),
    ("work", "list"),
    ("case", "list"),
    ("db", "status"),
)
WRITING = (("cancel", "lost"), ("resume", "lost"), ("resume", "--lost"), ("work", "enqueue", "--kind", "a"))


def can_mount() -> bool:
    """Whether this process may make a mount of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="needs unshare(1) and the right to mount")


@pytest.fixture
def used(place: Place) -> Place:
    """A place with a run that has ended and a lost one, whose log of changes SQLite has not merged yet."""
    assert place.play(SEND, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r")).code == 0
    running = place.start_playing({"touch": place.path("on")}, {"hang": True}, words=("--run-id", "lost"))
    place.wait_for("on")
    running.kill()
    running.wait()
    return place


def type_read_only(place: Place, *words: str) -> Ended:
    """Run a command for which the home is mounted read-only."""
    program = [sys.executable, "-m", "jackline", *words]
    return place.end_of(place.execute(["unshare", "-m", "sh", "-c", READ_ONLY, str(place.home), *program]))


@needs_mount
@pytest.mark.parametrize("log", ["with", "merged"])
def test_reading_works_and_writing_is_one_line(used: Place, log: str) -> None:
    if log == "merged":  # as after a clean end of the last process
        assert used.type("db", "check").code == 0
        assert not Path(used.home, "state.sqlite-wal").exists()
    else:
        assert Path(used.home, "state.sqlite-wal").stat().st_size > 0
    for words in READING:
        ended = type_read_only(used, *words)
        assert (ended.code, "Traceback" in ended.err) == (0, False), (words, ended)
    listed = type_read_only(used, "list")
    assert ("\tlost\t" in listed.out, "\tsucceeded\t" in listed.out) == (True, True), listed
    for words in (*WRITING, ("run", "--script", used.script(SAY))):
        ended = type_read_only(used, *words)
        last = ended.err.splitlines()[-1]
        assert (ended.code, last.startswith("jackline: "), str(used.home) in last) == (1, True, True), (words, ended)
        assert "Traceback" not in ended.err


@needs_mount
def test_a_reader_sees_what_a_live_writer_has_written(place: Place) -> None:
    running = place.start_playing({"touch": place.path("on")}, {"wait_for": {"file": place.path("end")}}, SAY)
    place.wait_for("on")
    assert [row["state"] for row in type_read_only(place, "list", "--json").rows] == ["running"]
    place.let_go("end")
    assert place.end_of(running).code == 0
    assert [row["state"] for row in type_read_only(place, "list", "--json").rows] == ["succeeded"]


@needs_mount
def test_a_copy_without_the_shared_memory_says_what_to_do(used: Place) -> None:
    copy = used.folder / "copy"
    shutil.copytree(used.home, copy, ignore=shutil.ignore_patterns("*.sock"))
    (copy / "state.sqlite-shm").unlink()
    used.environ["JACKLINE_HOME"] = str(copy)
    program = [sys.executable, "-m", "jackline", "list"]
    ended = used.end_of(used.execute(["unshare", "-m", "sh", "-c", READ_ONLY, str(copy), *program]))
    assert (ended.code, is_one_line(ended), "state.sqlite-wal has changes" in ended.err) == (1, True, True), ended
    assert used.type("list").code == 0
