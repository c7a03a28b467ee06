"""Treats the `jackline` command as a wrapper: a case runs its verification commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.shell.model import Word
from jackline.domain.shell.taken import Taken

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_VALUED = frozenset(["--case", "--home"])
_VERIFYING = frozenset(["--verify", "--verification"])


def commands(words: tuple[Word, ...], stdin: Word | None) -> Taken:
    """Return jackline itself, and the commands that a case runs now or when it is closed."""
    del stdin
    case = _skip_subcommand("case", words[1:])
    ran = _skip_own_flags(_skip_subcommand("run", _skip_subcommand("command", case)))
    if ran:
        line = (Word("sh"), Word("-c"), *ran)  # a single word is a shell command line
        return Taken(calls=(line if len(ran) == 1 else ran,), through="jackline case")
    calls = tuple((Word("sh"), Word("-c"), line) for line in _find_verification(case))
    return Taken(kept=words, calls=calls, through="jackline case")


def _skip_subcommand(verb: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words after this subcommand, or nothing for another subcommand."""
    rest = _skip_own_flags(words)
    return rest[1:] if rest and rest[0] == Word(verb) else ()


def _skip_own_flags(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].text.startswith("-"):
        if words[0].text == "--":
            return words[1:]
        words = words[2 if words[0].text in _OWN_VALUED else 1 :]
    return words


def _find_verification(words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the values of `--verify CMD` and `--verification CMD CMD`."""
    given = False
    for word in words:
        name, sign, value = word.text.partition("=")
        if word.text.startswith("-"):
            given = name in _VERIFYING
            if given and sign:
                yield word._replace(text=value)
        elif given:
            yield word
