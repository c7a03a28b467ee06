"""On a terminal and in a pipe: the live line, Ctrl-C, tables, colours and closed pipes."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from typing import Any

import pytest

from jackline.formatting import measure_width
from tests.cli.place import SAY, SECONDS, Place

# The program gets the terminal as its own, so that Ctrl-C typed into it becomes a signal.
AT_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'jackline', *sys.argv[1:]])"
)


class Terminal:
    """A command at a pseudo-terminal."""

    def __init__(self, place: Place, *words: str, **environ: str) -> None:
        self.ours, theirs = pty.openpty()
        environment = place.environment(**{"TERM": "xterm", "COLUMNS": "100", **environ})
        argv = [sys.executable, "-c", AT_TERMINAL, *words]
        streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = subprocess.Popen(argv, cwd=place.repository, env=environment, **streams)
        os.close(theirs)
        self.seen = ""

    def read(self) -> bool:
        """False when the other side is closed."""
        ready, _, _ = select.select([self.ours], [], [], SECONDS)
        assert ready, self.seen
        try:
            chunk = os.read(self.ours, 65536)
        except OSError:
            return False
        self.seen += chunk.decode(errors="replace")
        return bool(chunk)

    def until(self, pattern: str) -> re.Match[str]:
        """Read until it is seen."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.seen)):
            assert self.read(), f"{pattern} never came: {self.seen!r}"
            assert time.monotonic() < end, self.seen
        return found

    def end(self) -> str:
        while self.read():
            pass
        os.close(self.ours)
        self.process.wait(SECONDS)
        return self.seen.replace("\r\n", "\n")


def test_one_live_line_that_is_erased_at_the_end(place: Place) -> None:
    steps = (
        {"usage": {"input": 100, "output": 50, "usd": 0.25}},
        {"say": "halfway"},
        {"wait_for": place.path("go")},
    )
    terminal = Terminal(place, "run", "--script", place.script(*steps))
    terminal.until(r"working · [\d.]+s · 150 tokens · \$0\.25 · halfway")
    place.let_go("go")
    seen = terminal.end()
    assert terminal.process.returncode == 0
    live, summary = seen.rsplit("\r\x1b[2K", 1)
    assert "\n" not in live  # one line, overwritten each time
    assert summary.startswith("run ")
    assert "\x1b[32msucceeded, unverified\x1b[0m" in summary


def test_ctrl_c_at_the_terminal(place: Place) -> None:
    terminal = Terminal(place, "run", "--script", place.script({"say": "listening"}, {"hang": True}), "--run-id", "r")
    terminal.until("listening")
    os.write(terminal.ours, b"\x03")
    assert "continue: jackline resume r" in terminal.end()
    assert terminal.process.returncode == 130


def test_a_table_fits_the_terminal_and_obeys_no_escape_of_a_prompt(place: Place) -> None:
    assert place.play(SAY, words=("fix \x1b[31m the\nthing " + "long " * 100, "--run-id", "r")).code == 0
    (row,) = Terminal(place, "list").end().splitlines()
    assert "\x1b[32m✓ succeeded\x1b[0m" in row
    plain = row.replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert "\x1b" not in plain
    assert re.fullmatch(r"#1  ✓ succeeded  scripted  fix \[31m the thing long .*…  \d+s ago", plain)
    assert len(plain) <= 100


HOSTILE = "\x1b]0;x\x07\u202e\u2066\x9b31m"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Runs with wide, long, empty and hostile prompts in two repositories; the tests only read them."""
    place = Place(tmp_path_factory.mktemp("rows") / ("deep" * 10))
    other = place.folder / ("folder" * 8)
    for folder in (place.repository, other):
        folder.mkdir(parents=True)
    spend = {"usage": {"input": 1, "output": 1, "usd": 12.345}}
    assert place.play(spend, words=("漢字を直す" * 30,)).code == 0
    assert place.play({"error": {"class": "authentication"}}, words=(HOSTILE + "e\u0301" * 100,)).code == 1
    assert place.play({"limit": {}}, words=("short",)).code == 10
    assert place.play({"usage": {"usd": 0.1234}}, words=("--workspace", str(other), "there")).code == 0
    return place


@pytest.mark.parametrize("columns", [60, 61, 72, 80, 100, 132, 200])
@pytest.mark.parametrize("words", [(), ("--all-repos",)])
def test_one_line_per_run_fits_every_width(rows: Place, words: tuple[str, ...], columns: int) -> None:
    lines = Terminal(rows, "list", "--no-color", *words, COLUMNS=str(columns)).end().splitlines()
    assert len(lines) == 3 + len(words)
    assert max(measure_width(line) for line in lines) <= columns
    assert all(line.isprintable() for line in lines)
    failed, dear = lines[-2:]
    assert "✗ failed" in failed
    assert "#1" in dear
    assert dear.endswith("s ago  $12.35"), dear
    assert "$" not in failed  # a cost that nobody reported is left out
    if columns >= 100:
        assert re.search(r"#3  ! waiting: limit +scripted  short +\d+s ago$", lines[-3])


def test_the_paths_of_a_list_are_short(rows: Place) -> None:
    lines = Terminal(rows, "list", "--no-color", "--all-repos", COLUMNS="120").end().splitlines()
    assert lines[0].startswith("…")
    assert lines[-1].startswith("~/repository")
    assert "$0.12" in lines[0]


@pytest.mark.parametrize(("words", "environ"), [(("--no-color",), {}), ((), {"NO_COLOR": "1"})])
def test_colours_can_be_disabled(place: Place, words: tuple[str, ...], environ: dict[str, str]) -> None:
    assert place.play(SAY).code == 0
    seen = Terminal(place, "list", *words, **environ).end()
    assert "succeeded" in seen
    assert "\x1b" not in seen


def test_plain_lines_in_a_pipe(place: Place) -> None:
    ended = place.play({"say": "one"}, {"say": "two"}, words=("--proof", "true"))
    assert ended.err.splitlines() == ["turn 1 started", "one", "two", "proof: true"]
    assert "\x1b" not in ended.out + ended.err


def test_a_reader_that_goes_away_disturbs_nothing(place: Place) -> None:
    script = place.script(SAY, {"exit": 5})
    codes = {
        ("run", "--script", script): 1,
        ("list",): 0,
        ("show", "1"): 0,
        ("logs", "1"): 0,
        ("list", "--help"): 0,
    }
    for words, code in codes.items():
        reader, writer = os.pipe()
        os.close(reader)
        process = place.start(*words, stdout=writer)
        os.close(writer)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == code, (words, err)
        assert "jackline:" not in err
        assert "Error" not in err
    assert place.type("list", "--json").rows[0]["state"] == "failed"


def test_output_that_cannot_be_written_is_reported(place: Place) -> None:
    assert place.play(SAY).code == 0
    with open("/dev/full", "w") as full:
        process = place.start("list", stdout=full)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert err == "jackline: the output cannot be written: No space left on device\n"


def test_a_terminal_that_is_not_unicode(place: Place) -> None:
    assert place.play(SAY, words=("grüße — ☃",)).code == 0
    ended = place.type("list", environ={"PYTHONIOENCODING": "ascii"})
    assert (ended.code, "gr\\xfc\\xdfe \\u2014 \\u2603" in ended.out) == (0, True)
