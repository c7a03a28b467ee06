"""`jackline mcp` as a command: its words."""

from __future__ import annotations

import os

import pytest

from tests.cli.place import Place, is_one_line
from tests.cli.test_terminal import Terminal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mcp", "--port", "80"), "--port needs --http"),
        (("mcp", "--http", "--port", "65536"), "is not a port"),
        (("mcp", "--http", "--port", "-1"), "port"),
        (("mcp", "--sse"), "--sse"),
        (("mcp", "more"), "more"),
    ],
)
def test_wrong_words_are_told_in_one_line(place: Place, words: tuple[str, ...], said: str) -> None:
    ended = place.type(*words)
    assert (ended.code, ended.out, is_one_line(ended)) == (2, "", True), ended
    assert said in ended.err


def test_at_a_terminal_it_says_what_it_waits_for(place: Place) -> None:
    terminal = Terminal(place, "mcp")
    terminal.until("waiting for an MCP client")
    os.write(terminal.ours, b"\x03")
    assert "Traceback" not in terminal.end()
    assert terminal.process.returncode == 130
