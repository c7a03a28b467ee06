"""Texts that nobody thought of: words survive quoting, nothing but NotParsed is raised, and a real bash agrees."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jackline.shell import list_commands
from jackline.shell.model import NotParsed
from tests.shell_texts import FRAGMENTS
from tests.support.slow_cases import keep_every_other

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
BASH = shutil.which("bash") or ""
NEEDS_BASH = pytest.mark.skipif(not BASH, reason="bash is not installed")

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
    for constants in (False, True):
        with suppress(NotParsed):
            found = list_commands(text, constants=constants)
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
    "a=$a$a;",
    "f(){ f;};f;",
    "for i in 1 2;do ",
    "alias a=b;a;",
    "alias a=b b=a a=c c=a b=c c=b;a;",
    "set -- $@ $@;",
    "eval a=1;",
    "(a=1)||",
]


@pytest.mark.parametrize("unit", keep_every_other(sorted(set(UNITS))), ids=ascii)
def test_a_long_text_of_one_thing_comes_to_an_end(unit: str) -> None:
    """A reader that goes back would not live to see it."""
    for ending in ("", "a", ")"):
        with suppress(NotParsed):
            assert list_commands(unit * (5_000 // len(unit)) + ending, constants=True) is not None


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
