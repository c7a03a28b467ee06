"""Random shell texts against a real bash: no program that bash runs is missed by a parse, and no exact word is wrong.

JACKLINE_SEED=n runs the texts of other seeds. A failure prints the text.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from jackline.shell import list_commands
from jackline.shell.model import NotParsed, ShellCommand
from tests.bash_witness import BASH, prepare_folder, run_texts
from tests.shell_state_texts import state_text_of
from tests.shell_texts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not BASH and os.environ.get("CI") != "true", reason="bash is not installed")

FIRST = int(os.environ.get("JACKLINE_SEED", "0"))
AT_ONCE = 250  # texts in one bash
# They run a text that is only known at run time, or that comes from a file.
_OPEN = frozenset({"eval", "trap", ".", "source", "bash", "sh", "env", "xargs", "timeout"})


def _fits(ran: list[str], command: ShellCommand) -> bool:
    """True when the command may have become what ran: from its first word that is not exact, anything."""
    if command.words and command.words[0].text in _OPEN:
        return True
    for place, word in enumerate(command.words):
        if not word.exact:
            return True
        if ran[place : place + 1] != [word.text]:
            return False
    return len(ran) == len(command.words)


def _list_readings(text: str) -> Iterator[tuple[ShellCommand, ...]]:
    """The commands as older runs read them, then with constants."""
    for constants in (False, True):
        try:
            yield list_commands(text, constants=constants)
        except NotParsed:
            continue


def _compare(seed: int, count: int, folder: Path) -> None:
    chance = random.Random(seed)
    prepare_folder(folder)
    accepted = ran = 0
    for batch in range(count // AT_ONCE):
        texts = [state_text_of(chance) if chance.random() < 0.6 else text_of(chance) for _ in range(AT_ONCE)]
        for text, calls in zip(texts, run_texts(texts, seed + batch, folder), strict=True):
            for found in _list_readings(text):
                accepted += 1
                for words in calls:
                    ran += 1
                    # After a pipe, bash takes `time` for a program, which this bash cannot find.
                    known = words[0] == "time" or any(_fits(words, command) for command in found)
                    assert known, f"seed {seed}: bash ran {words} in the text {text!r}; parsed: {found}"
    assert accepted > count, "most texts are rejected, which proves nothing"  # two readings each
    assert ran > 5 * count, "the texts ran too little to prove anything"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 1))
def test_bash_runs_no_command_that_was_not_given(seed: int, tmp_path: Path) -> None:
    _compare(seed, 250, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(FIRST + 1000, FIRST + 1020))
def test_bash_runs_no_command_that_was_not_given_in_100000_texts(seed: int, tmp_path: Path) -> None:
    _compare(seed, 5000, tmp_path)
