"""Finds the line of each rule and key in the text of a policy. Pure; the text must be valid TOML.

`tomllib` does not report the lines of values, but errors should name them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "rule"
_OPENING, _CLOSING = "[{", "]}"


@cache
def _compile_token() -> re.Pattern[str]:
    # A string or a comment is one token, so a [[rule]] inside it does not count.
    return re.compile(
        r'''
    """(?:\\.|[^\\])*?""""{0,2}  # multi-line string; quotes may precede its end
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


class RulePlace(NamedTuple):
    """The line where a rule begins, and the line of each of its keys."""

    line: int
    words: dict[str, int]


class Lines(NamedTuple):
    """The lines of all rules in order, and of the other keys of the file."""

    rules: list[RulePlace]
    words: dict[str, int]


class _Statement(NamedTuple):
    """A table header or a `name = value`, possibly over several lines; `inner` has the lines of tables in its list."""

    line: int
    names: tuple[str, ...]
    is_header: bool
    is_list: bool
    inner: tuple[int, ...]


def lines_of(text: str) -> Lines:
    """Find the lines of everything that an error may be about."""
    found = Lines([], {})
    here: tuple[str, ...] = ()  # the current table
    for statement in _split_statements(text):
        if statement.is_header:
            here = statement.names
            _add_header(statement, found)
        elif here == (RULE,) and found.rules:
            found.rules[-1].words.setdefault(statement.names[0], statement.line)
        elif not here:
            found.words.setdefault(statement.names[0], statement.line)
            found.rules.extend(RulePlace(line, {}) for line in statement.inner if statement.names == (RULE,))
    return found


def _add_header(statement: _Statement, found: Lines) -> None:
    if statement.names == (RULE,) and statement.is_list:
        found.rules.append(RulePlace(statement.line, {}))
    elif statement.names[0] == RULE and len(statement.names) > 1 and found.rules:
        found.rules[-1].words.setdefault(statement.names[1], statement.line)
    else:
        found.words.setdefault(statement.names[0], statement.line)


def _split_statements(text: str) -> Iterator[_Statement]:
    """Split the text into statements: a line break ends one unless a bracket is open."""
    kept: list[tuple[str, int]] = []
    depth, line = 0, 1
    for found in _compile_token().finditer(text):
        piece = found[0]
        depth += (piece in _OPENING) - (piece in _CLOSING)
        if piece == "\n" and depth == 0:
            yield from _parse_statement(kept)
            kept = []
        elif piece.strip() and not piece.startswith("#"):
            kept.append((piece, line))
        line += piece.count("\n")
    yield from _parse_statement(kept)


def _parse_statement(pieces: list[tuple[str, int]]) -> Iterator[_Statement]:
    if not pieces:
        return
    texts = [piece for piece, _ in pieces]
    is_header = texts[0] == "["
    head = texts if is_header else texts[: texts.index("=")]
    names = tuple(piece[1:-1] if piece[:1] in {'"', "'"} else piece.strip() for piece in head if piece not in "[].")
    inner = () if is_header else tuple(_find_table_lines(pieces[len(head) + 1 :]))
    yield _Statement(pieces[0][1], names, is_header, texts[:2] == ["[", "["], inner)


def _find_table_lines(pieces: list[tuple[str, int]]) -> Iterator[int]:
    """Yield the lines on which the tables of `rule = [{...}, {...}]` begin."""
    depth = 0
    for piece, line in pieces:
        if piece == "{" and depth == 1:
            yield line
        depth += (piece in _OPENING) - (piece in _CLOSING)
