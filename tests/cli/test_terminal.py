"""On a terminal and in a pipe: the live line, Ctrl-C, tables, colours and closed pipes."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from typing import Any, Self

import pytest

from jackline.formatting import measure_width
from tests.cli.place import EFFECT_RULE, SAY, SECONDS, SEND, SEND_FAILS, Place
from tests.support.command_server import AT_TERMINAL, start_jackline


class Terminal:
    """A command at a pseudo-terminal; `redirect` sends one of its streams to a file instead."""

    def __init__(
        self,
        place: Place,
        *words: str,
        redirect: tuple[int, str] | None = None,
        program: str = "",  # instead of jackline
        cwd: str | None = None,
        **environ: str,
    ) -> None:
        self.ours, theirs = pty.openpty()
        environment = place.environment(**{"TERM": "xterm", "COLUMNS": "100", **environ})
        streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        with contextlib.ExitStack() as stack:
            if redirect is not None:
                streams[("stdin", "stdout", "stderr")[redirect[0]]] = stack.enter_context(open(redirect[1], "w"))
            where: dict[str, Any] = {"cwd": cwd or str(place.repository), "env": environment}
            if program:
                argv = [sys.executable, "-c", AT_TERMINAL + program, *words]
                self.process = subprocess.Popen(argv, text=True, **where, **streams)
            else:
                self.process = start_jackline(words, at_terminal=True, text=True, **where, **streams)
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


class Tmux:
    """A window of tmux in which commands run, as a person would see them."""

    def __init__(self, place: Place, columns: int, rows: int) -> None:
        self._place = place
        self._words = ("tmux", "-S", place.path("tmux"), "-f", "/dev/null")
        self._environ = place.environment(TERM="xterm", LANG="C.UTF-8", PS1="", SHELL="/bin/sh")
        self._call("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(place.repository), "/bin/sh")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call("kill-server")

    def _call(self, *words: str) -> str:
        done = subprocess.run([*self._words, *words], env=self._environ, check=True, capture_output=True, text=True)
        return done.stdout

    def type(self, *words: str) -> None:
        """Type a command of jackline; the screen is cleared first."""
        command = shlex.join((sys.executable, "-m", "jackline", *words))
        self._call("send-keys", "-l", f"clear; {command}")
        self._call("send-keys", "Enter")

    def resize(self, columns: int) -> None:
        self._call("resize-window", "-x", str(columns))

    def wait_for(self, pattern: str) -> str:
        """Wait until the screen shows it; return the screen."""
        until = time.monotonic() + SECONDS
        while not re.search(pattern, shown := self._call("capture-pane", "-p", "-S", "-")):
            assert time.monotonic() < until, f"{pattern} never came: {shown}"
            time.sleep(0.02)
        return shown


def read_screen(seen: str) -> list[str]:
    """The lines that a terminal without an edge shows after all of it; the live line must be gone."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[[\d?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", seen):
        match part:
            case "\r":
                column = 0
            case "\n":
                lines.append("")
                column = 0
            case "\x1b[J":
                lines[-1] = lines[-1][:column]
            case _ if part.startswith("\x1b"):
                assert part in {"\x1b[?7l", "\x1b[?7h"} or part.endswith("m"), part
            case _:
                lines[-1] = lines[-1][:column] + part + lines[-1][column + len(part) :]
                column += len(part)
    return lines


def wait_in_shell(place: Place, name: str) -> str:
    return f"until [ -e {place.path(name)} ]; do sleep 0.01; done"


def test_words_and_calls_stay_and_the_live_line_goes(place: Place) -> None:
    steps = (
        {"usage": {"input": 100, "output": 50, "usd": 0.25}},
        {"say": "halfway,\nlistening"},
        {"call": {"tool": "bash", "input": {"command": "pytest -q"}, "run": wait_in_shell(place, "go")}},
        {"call": {"tool": "bash", "input": {"command": "make"}, "run": "exit 3"}},
        {"say": "all done"},
    )
    terminal = Terminal(place, "run", "--script", place.script(*steps))
    terminal.until(r"[\d.]+s · \$0\.25\d* · \$19\.75 left · 150 tokens · [\d.]+s \$ pytest -q")
    place.let_go("go")
    seen = terminal.end()
    assert terminal.process.returncode == 0
    assert "\x1b[32msucceeded, unverified\x1b[0m" in seen
    screen = read_screen(seen)
    assert screen[:3] == ["turn 1 started", "  halfway,", "  listening"]
    assert re.fullmatch(r"\$ pytest -q   local ✓ [\dm.s ]+", screen[3])
    assert re.fullmatch(r"\$ make   local ✗ exit 3 [\dm.s ]+", screen[4])
    assert screen[5] == "  all done"  # the last message is not printed twice
    assert screen[6].startswith("run ")


def test_the_last_message_follows_what_came_after_it(place: Place) -> None:
    words = ("run", "--script", place.script({"say": "all done"}), "--proof", "true")
    screen = read_screen(Terminal(place, *words).end())
    assert screen[1] == "  all done"
    assert screen[2].startswith("proof: true   ✓ ")
    assert screen[3] == "  all done"
    assert screen[4].startswith("run ")


def test_a_terminal_that_becomes_narrower_keeps_a_clean_screen(place: Place) -> None:
    """tmux breaks the live line in two when the window shrinks; all of it must go."""
    steps = (
        {"say": "one\ntwo\nthree\nfour\nlistening to a long sentence that fits the wide window"},
        {"call": {"tool": "bash", "input": {"command": "pytest " + "-q " * 50}, "run": wait_in_shell(place, "go")}},
        {"say": "all done"},
    )
    with Tmux(place, 120, 30) as tmux:
        tmux.type("run", "--script", place.script(*steps), "--run-id", "r")
        tmux.wait_for(r"window\n[^\n]*\$ pytest")
        tmux.resize(40)
        tmux.wait_for(r"left · [\d.ms ]+ \$ pytest[^\n]{0,16}…\n*\Z")
        place.let_go("go")
        shown = tmux.wait_for(r"details: ")
    assert shown.count("$ pytest") == 1
    assert " left" not in shown
    assert re.search(r"\n\$ pytest[^\n]*…   local ✓ [^\n]+\n  all done\nrun r", shown)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_pipe_has_no_control_sequences_and_always_the_last_message(place: Place, stream: str) -> None:
    """The other stream is a terminal."""
    path = place.folder / "piped"
    number = 1 if stream == "stdout" else 2
    words = ("run", "--script", place.script({"say": "all done"}))
    terminal = Terminal(place, *words, redirect=(number, str(path)))
    screen = read_screen(terminal.end())
    piped = path.read_text(encoding="utf-8")
    assert "\x1b" not in piped
    assert "\r" not in piped
    lines = piped.splitlines()
    if stream == "stdout":
        assert lines[0] == "  all done"
        assert lines[1].startswith("run ")
        assert [line.rstrip() for line in screen] == ["turn 1 started", "  all done", ""]
    else:
        assert lines == ["turn 1 started", "  all done"]
        assert screen[0] == "  all done"
        assert screen[1].startswith("run ")


def test_a_dumb_terminal_gets_plain_lines(place: Place) -> None:
    seen = Terminal(place, "run", "--script", place.script({"say": "all done"}), TERM="dumb").end()
    assert "\x1b" not in seen
    assert seen.splitlines()[1] == "  all done"


@pytest.mark.parametrize("command", ["run", "resume", "answer"])
def test_quiet_prints_only_the_figures(place: Place, command: str) -> None:
    policy = place.policy(EFFECT_RULE.replace('"allow"', '"ask"'))
    script = place.script(*([] if command == "run" else [SEND]), {"say": "all done"})
    words: tuple[str, ...] = ("run", "--script", script, "--policy", policy, "--run-id", "r")
    if command != "run":
        assert place.type(*words).code == 14
        (call,) = place.type("show", "r", "--json").json["calls"]
        answer = ("answer", "r", call["id"], "allow")
        assert command == "answer" or place.type(*answer).code == 0
        words = (*answer, "--resume") if command == "answer" else ("resume", "r")
    screen = read_screen(Terminal(place, *words, "--quiet").end())
    assert screen[0].startswith("run r (#1) succeeded")
    assert all(line.startswith("  ") or not line for line in screen[1:])
    assert "all done" not in "".join(screen)


def test_quiet_in_a_pipe(place: Place) -> None:
    ended = place.play({"say": "all done"}, words=("--quiet",))
    assert (ended.err, ended.out.startswith("run ")) == ("", True)


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
        assert re.search(r"#3  ! waiting: limit [\w: ]+ +scripted  short +\d+s ago$", lines[-3])


def test_the_paths_of_a_list_are_short(rows: Place) -> None:
    lines = Terminal(rows, "list", "--no-color", "--all-repos", COLUMNS="120").end().splitlines()
    assert lines[0].startswith("…")
    assert lines[-1].startswith("~/repository")
    assert "$0.12" in lines[0]


@pytest.mark.parametrize(("words", "environ"), [(("--no-color",), {}), ((), {"NO_COLOR": "1"})])
def test_colours_can_be_disabled(place: Place, words: tuple[str, ...], environ: dict[str, str]) -> None:
    assert place.play(SAY).code == 0
    seen = Terminal(place, "list", *words, redirect=None, **environ).end()
    assert "succeeded" in seen
    assert "\x1b" not in seen


def test_plain_lines_in_a_pipe(place: Place) -> None:
    ended = place.play({"say": "one"}, {"say": "two\nlines"}, words=("--proof", "true"))
    *lines, proof = ended.err.splitlines()
    assert lines == ["turn 1 started", "  one", "  two", "  lines"]
    assert proof.startswith("proof: true   ✓ ")
    assert ended.out.startswith("  two\n  lines\nrun ")
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
    ended = place.play({"say": "grüße"}, SEND_FAILS, words=("--proof", "true"), environ={"PYTHONIOENCODING": "ascii"})
    assert "  gr\\xfc\\xdfe\n" in ended.out
    assert re.search(r"send to=ada   unknown x exit 1 ", ended.err)
    assert "proof: true   ok " in ended.err
    rows = place.type("list", "--json", environ={"PYTHONIOENCODING": "ascii"}).rows
    assert rows[-1]["prompt"] == "grüße — ☃"
    ended = place.type("list", environ={"PYTHONIOENCODING": "ascii"})
    assert (ended.code, "gr\\xfc\\xdfe \\u2014 \\u2603" in ended.out) == (0, True)
