"""`jackline mcp` as a command: its words, and what it says where the SDK is missing."""

from __future__ import annotations

import os

import pytest

from tests.cli.place import Place, is_one_line
from tests.cli.test_terminal import Terminal

# As if the extra were not installed.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mcp", "mcp_types", "pydantic", "anyio"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "mcp" else found(name, package)
sys.meta_path.insert(0, Missing())
from jackline.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", [("mcp",), ("mcp", "--http")])
def test_without_the_extra_it_says_in_one_line_how_to_get_it(place: Place, words: tuple[str, ...]) -> None:
    ended = place.end_of(place.python(WITHOUT, *words))
    assert (ended.code, ended.out, is_one_line(ended)) == (2, "", True), ended
    assert "pip install 'jackline[mcp]'" in ended.err


def test_without_the_extra_everything_else_works(place: Place) -> None:
    for words in (("list",), ("work", "enqueue", "--kind", "review", "--id", "pr-1"), ("mcp", "--help")):
        ended = place.end_of(place.python(WITHOUT, *words))
        assert ended.code == 0, ended


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
