"""Pipes that are closed early (`| head -1`): every command exits quietly, and output to a pipe has no colours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.cli.place import SAY, SECONDS, Place

COMMANDS = [
    ("--help",), ("list",), ("show", "1"), ("agents",), ("doctor",), ("config",), ("uninstall",), ("trust", "--show"),
    ("completion", "bash"), ("init",),
]  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with one run, for commands that only read."""
    place = Place(tmp_path_factory.mktemp("place"))
    place.repository.mkdir()
    assert place.play(SAY).code == 0
    yield place
    place.close()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_pipe_is_not_a_failure(played: Place, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = played.start(*words, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert "jackline: " not in err
    assert "Error" not in err


def test_the_first_line_of_many(place: Place) -> None:
    for number in range(3):
        assert place.play(SAY, words=("word " * 20_000, "--run-id", f"run-{number}")).code == 0
    shell = 'set -o pipefail; "$0" -m jackline list --json --limit 3 | head -c 10; echo "${PIPESTATUS[0]}" >&2'
    ended = place.end_of(place.execute(["bash", "-c", shell, sys.executable]))
    assert (len(ended.out), ended.err) == (10, "0\n"), ended


@pytest.mark.parametrize("words", [("agents",), ("doctor",), ("config",), ("list",)], ids=" ".join)
def test_no_colours_in_a_pipe(place: Place, words: tuple[str, ...]) -> None:
    assert "\x1b" not in place.type(*words, environ={"TERM": "xterm-256color"}).out
