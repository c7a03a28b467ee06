"""Where in the text of a policy each rule stands, and each of its words. Pure; the text is known to be good TOML.

The library that reads TOML tells no lines of values, and a person with a wrong word wants to be led to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "rule"
# A string is one piece, whatever it holds: a [[rule]] in a probe's text, or in a comment, is none.
_PIECE = re.compile(
    r'''
    """(?:\\.|[^\\])*?""""{0,2}  # text over many lines; quotes may stand right before its end
    | "(?:\\.|[^"\\\n])*"
    | \#[^\n]*
    | [\[\]{}=\n.]
    | [^\[\]{}=\n."'\#]+
    '''
    r"""
    | '''.*?''''{0,2}  # the same without escapes
    | '[^'\n]*'
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING, _CLOSING = "[{", "]}"


class RulePlace(NamedTuple):
    """The line where a rule begins, and the line of each word in it."""

    line: int
    words: dict[str, int]


class Lines(NamedTuple):
    """Every rule in its order, and the other words of the file."""

    rules: list[RulePlace]
    words: dict[str, int]


class _Statement(NamedTuple):
    """A header or a line `name = value`, which may be many lines long; `inner` is where tables in its list begin."""

    line: int
    names: tuple[str, ...]
    is_header: bool
    is_list: bool
    inner: tuple[int, ...]


def lines_of(text: str) -> Lines:
    """The places of everything that a mistake may be about."""
    found = Lines([], {})
    here: tuple[str, ...] = ()  # the table that words belong to
    for statement in _statements(text):
        if statement.is_header:
            here = statement.names
            _note_header(statement, found)
        elif here == (RULE,) and found.rules:
            found.rules[-1].words.setdefault(statement.names[0], statement.line)
        elif not here:
            found.words.setdefault(statement.names[0], statement.line)
            found.rules.extend(RulePlace(line, {}) for line in statement.inner if statement.names == (RULE,))
    return found


def _note_header(statement: _Statement, found: Lines) -> None:
    if statement.names == (RULE,) and statement.is_list:
        found.rules.append(RulePlace(statement.line, {}))
    elif statement.names[0] == RULE and len(statement.names) > 1 and found.rules:
        found.rules[-1].words.setdefault(statement.names[1], statement.line)
    else:
        found.words.setdefault(statement.names[0], statement.line)


def _statements(text: str) -> Iterator[_Statement]:
    """One after the other: a line break ends one unless a bracket is open."""
    kept: list[tuple[str, int]] = []
    depth, line = 0, 1
    for found in _PIECE.finditer(text):
        piece = found[0]
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if piece == "\n" and depth == 0:
            yield from _statement(kept)
            kept = []
        elif piece.strip() and not piece.startswith("#"):
            kept.append((piece, line))
        line += piece.count("\n")
    yield from _statement(kept)


def _statement(pieces: list[tuple[str, int]]) -> Iterator[_Statement]:
    if not pieces:
        return
    texts = [piece for piece, _ in pieces]
    is_header = texts[0] == "["
    head = texts if is_header else texts[: texts.index("=")]
    names = tuple(_name(piece) for piece in head if piece not in "[].")
    inner = () if is_header else tuple(_tables(pieces[len(head) + 1 :]))
    yield _Statement(pieces[0][1], names, is_header, texts[:2] == ["[", "["], inner)


def _tables(pieces: list[tuple[str, int]]) -> Iterator[int]:
    """The lines on which the tables of a list begin: `rule = [{...}, {...}]`."""
    depth = 0
    for piece, line in pieces:
        if piece == "{" and depth == 1:
            yield line
        depth += (piece in _OPENING) - (piece in _CLOSING)


def _name(piece: str) -> str:
    return piece[1:-1] if piece[:1] in {'"', "'"} else piece.strip()
