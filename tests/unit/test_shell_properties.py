"""Texts that nobody thought of: words survive quoting, nothing but NotParsed is raised, and a real bash agrees."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jackline.shell import list_commands
from jackline.shell.model import NotParsed, ShellCommand
from tests.shell_texts import FRAGMENTS, text_of

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
BASH = shutil.which("bash") or ""
NEEDS_BASH = pytest.mark.skipif(not BASH and os.environ.get("CI") != "true", reason="bash is not installed")

LETTERS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
# No program of these names is a wrapper or a word of the grammar.
PROGRAMS = st.sampled_from(["git", "npm", "./build.sh", "/usr/bin/curl", "docker-compose"])
CALLS = st.lists(st.tuples(PROGRAMS, st.lists(LETTERS, max_size=5)), min_size=1, max_size=5)
SEPARATORS = st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & ", "|", " |& ", ";", " \\\n && ", " # why\n"])
FRAMES = [
    "{}",
    "( {} )",
    "{{ {}\n}}",
    "if {}\nthen :; fi",
    "while {}\ndo :; done",
    "f() {{ {}\n}}",
    "case x in y) {}\n;; esac",
    'echo "$({})"',
    "x=$({})",
    "! {}",
    "time {}",
    "for x in y; do {}\ndone",
    "<({})",
    "${{x:-$({})}}",
]


@UNHURRIED
@given(calls=CALLS, separators=st.lists(SEPARATORS, min_size=5, max_size=5), frame=st.sampled_from(FRAMES))
def test_quoted_words_come_back_exactly_whatever_stands_around_them(
    calls: list[tuple[str, list[str]]], separators: list[str], frame: str
) -> None:
    given_words = [[program, *arguments] for program, arguments in calls]
    joined = "".join(
        shlex.join(words) + (separator if place + 1 < len(calls) else "")
        for place, (words, separator) in enumerate(zip(given_words, separators, strict=False))
    )
    found = [[word.text for word in command.words] for command in list_commands(frame.format(joined))]
    assert [words for words in found if words in given_words] == given_words


@UNHURRIED
@given(words=st.lists(LETTERS, min_size=1, max_size=5))
def test_a_text_inside_of_two_shells_has_the_words_that_were_quoted(words: list[str]) -> None:
    inner = shlex.join(["git", *words])
    (command,) = list_commands(shlex.join(["sudo", "bash", "-c", shlex.join(["sh", "-c", inner])]))
    assert [word.text for word in command.words] == ["git", *words]
    assert all(word.exact for word in command.words)


@UNHURRIED
@given(text=st.text(max_size=200) | st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
@example("\ud800 a")
@example("a" + "\\\n" * 1000)
def test_any_text_is_read_or_refused_and_nothing_else_is_raised(text: str) -> None:
    try:
        found = list_commands(text)
    except NotParsed:
        return
    assert all(command.words or command.redirects for command in found)


UNITS = [
    *FRAGMENTS,
    "a[",
    "{a,",
    "<<a ",
    "f(){ a;};",
    "find -exec ",
    "env ",
    "'[$('",
    "<<E\n\\\n",
    "cd a;",
    "a <<E;E\n",
    "x[[$(",
]


@pytest.mark.parametrize("unit", sorted(set(UNITS)), ids=ascii)
def test_a_long_text_of_one_thing_comes_to_an_end(unit: str) -> None:
    """A reader that goes back would not live to see it."""
    for ending in ("", "a", ")"):
        with suppress(NotParsed):
            assert list_commands(unit * (5_000 // len(unit)) + ending) is not None


@NEEDS_BASH
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_bash_makes_the_same_words(data: st.DataObject) -> None:
    pieces = st.sampled_from(
        [
            "a",
            "B c",
            "'",
            "'x y'",
            '"',
            "\"x 'y'\"",
            "\\",
            "\\'",
            "$'a\\n\\x41'",
            "\\\n",
            " ",
            "#",
            "\\ ",
            "é",
            "=",
            "{",
            "}",
            "$",
            ",",
        ]
    )
    lines = data.draw(st.lists(st.lists(pieces, max_size=8).map("".join), min_size=8, max_size=8))
    read = {text: words for text in lines if (words := _exact_words(f"printf {text}")) is not None}
    script = "\n".join(f"printf '%s\\0' {text}\nprintf '\\1'" for text in read)
    shown = subprocess.run([BASH, "--norc", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    made = [part.split("\0")[:-1] for part in shown.stdout.decode().split("\1")[:-1]]
    # printf without a word still writes one empty text.
    assert made == [words[1:] or [""] for words in read.values()]


def _exact_words(text: str) -> list[str] | None:
    try:
        found = list_commands(text)
    except NotParsed:
        return None
    if len(found) != 1 or not all(word.exact for word in found[0].words):
        return None
    return [word.text for word in found[0].words]


# Every program that bash cannot find is written down with its words instead: none can be found.
WATCHED = """
command_not_found_handle() { builtin printf '%s\\0' "$#" "$@" >>"$LOG/$BASHPID"; return $((RANDOM % 2)); }
ulimit -t 2 -f 200; PATH=/nonexistent; FUNCNEST=6; RANDOM=$SEED
eval "$TEXT"
"""


def _ran(text: str, seed: int, folder: Path) -> list[list[str]]:
    log, work = folder / "log", folder / "work"
    shutil.rmtree(log, ignore_errors=True)
    log.mkdir()
    work.mkdir(exist_ok=True)
    environment = {"LOG": str(log), "TEXT": text, "SEED": str(seed), "LC_ALL": "C.UTF-8"}
    bash = subprocess.Popen(
        [BASH, "--norc", "-c", WATCHED],
        env=environment,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        bash.wait(10)
    except subprocess.TimeoutExpired:
        pass  # it waits for something that never comes; what it ran until now counts
    finally:
        _end(bash)
    written = [file.read_bytes().decode(errors="surrogateescape") for file in sorted(log.iterdir())]
    return [record for text in written for record in _records(text.split("\0")[:-1])]


def _end(bash: subprocess.Popen[bytes]) -> None:
    """End everything that the text left running in its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(bash.pid, signal.SIGKILL)
    bash.wait()


def _records(fields: list[str]) -> list[list[str]]:
    """The calls that one process wrote: each is the number of its words, and the words."""
    found: list[list[str]] = []
    while fields:
        count = int(fields[0])
        found.append(fields[1 : count + 1])
        fields = fields[count + 1 :]
    return found


def _fits(ran: list[str], command: ShellCommand) -> bool:
    """True when the command may have become what ran: from its first word that is not exact, anything."""
    if command.words and command.words[0].text in ("eval", "trap"):
        return True
    for place, word in enumerate(command.words):
        if not word.exact:
            return True
        if ran[place : place + 1] != [word.text]:
            return False
    return len(ran) == len(command.words)


@NEEDS_BASH
@pytest.mark.parametrize("seed", range(6))
def test_bash_runs_no_command_that_was_not_given(seed: int, tmp_path: Path) -> None:
    """Random programs, many of them broken a little: what bash really runs must be among what was read."""
    chance = random.Random(seed)
    ran = 0
    for _ in range(150):
        text = text_of(chance)
        try:
            found = list_commands(text)
        except NotParsed:
            continue
        for words in _ran(text, chance.randrange(1000), tmp_path):
            ran += 1
            assert any(_fits(words, command) for command in found), (text, words)
    assert ran > 30, "the texts ran too little to prove anything"
