"""Jackline's own command as a wrapper: a case runs what it is given as its verification. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.shell.model import Word
from jackline.domain.shell.taken import Taken

if TYPE_CHECKING:
    from collections.abc import Iterator

_OWN_VALUED = frozenset(["--case", "--home"])
_VERIFYING = frozenset(["--verify", "--verification"])


def commands(words: tuple[Word, ...], stdin: Word | None) -> Taken:
    """Jackline itself, and the commands of a case that it runs: at once, or when the case is closed."""
    del stdin
    case = _below("case", words[1:])
    ran = _behind_own_flags(_below("run", _below("command", case)))
    if ran:
        line = (Word("sh"), Word("-c"), *ran)  # a single word is a line for the shell
        return Taken(calls=(line if len(ran) == 1 else ran,), through="jackline case")
    calls = tuple((Word("sh"), Word("-c"), line) for line in _verification(case))
    return Taken(kept=words, calls=calls, through="jackline case")


def _below(verb: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """What stands behind a subcommand; nothing if it is another one."""
    rest = _behind_own_flags(words)
    return rest[1:] if rest and rest[0] == Word(verb) else ()


def _behind_own_flags(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and words[0].text.startswith("-"):
        if words[0].text == "--":
            return words[1:]
        words = words[2 if words[0].text in _OWN_VALUED else 1 :]
    return words


def _verification(words: tuple[Word, ...]) -> Iterator[Word]:
    """The values of `--verify CMD` and of `--verification CMD CMD`."""
    given = False
    for word in words:
        name, sign, value = word.text.partition("=")
        if word.text.startswith("-"):
            given = name in _VERIFYING
            if given and sign:
                yield word._replace(text=value)
        elif given:
            yield word
