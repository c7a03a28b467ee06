"""Finds the path arguments of a command: operands and flag values. Pure; it has no code for specific programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.builtin import flags
from jackline.domain.shell import Word
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.domain.judging.arguments import Line

HERE = Word(".", exact=True)
NOBODY_KNOWS = Word("$?", exact=False)


class Change(NamedTuple):
    """A path that is written or deleted; a container is a folder whose content changes."""

    word: Word
    deletes: bool = False
    is_container: bool = False


def named(line: Line) -> tuple[Word, ...]:
    """Return the operands: words that are neither flags nor flag values of this program."""
    valued = flags.ARGUMENTS.get(line.program, flags.NONE) | flags.VALUED.get(line.program, flags.NONE)
    verb = line.words[line.named[0]].text if line.named else ""
    valued |= flags.ARGUMENTS.get(f"{line.program} {verb}", flags.NONE)
    found: list[Word] = []
    skip = ended = False
    for word in line.words:
        if skip:
            skip = False
        elif ended or not word.text.startswith("-") or word.text == "-":
            found.append(word)
        elif word.text == "--":
            ended = True
        else:
            skip = word.text in valued
    return tuple(found)


def values(line: Line, names: Sequence[str]) -> Iterator[Word]:
    """Yield the values of these flags, in any spelling."""
    letters = frozenset(name[1] for name in names if len(name) == len("-o"))
    for index, word in enumerate(line.words):
        name, equals, value = word.text.partition("=")
        if equals and means(name, names):
            yield word._replace(text=value)
        elif means(word.text, names):
            yield from line.words[index + 1 : index + 2]
        elif (joined := _find_joined_value(word.text, letters)) is not None:
            yield from (word._replace(text=joined),) if joined else line.words[index + 1 : index + 2]


def _find_joined_value(text: str, letters: frozenset[str]) -> str | None:
    """Return the value joined to a letter in `-fsSLo/file`; empty if it is the next word, None if not found."""
    if text[:1] != "-" or text[1:2] in {"", "-"}:
        return None
    for place, letter in enumerate(text[1:], 1):
        if letter in letters:
            return text[place + 1 :]
        if not letter.isalpha():
            return None
    return None


def means(text: str, names: Sequence[str]) -> bool:
    """Check whether a word is one of these flags; many programs accept an abbreviated long flag."""
    shortened = text.startswith("--") and len(text) > len("--x") and any(name.startswith(text) for name in names)
    return text in names or shortened


def has(line: Line, flag: str) -> bool:
    """Check for a flag, with or without a value."""
    return any(word.text == flag or word.text.startswith(f"{flag}=") for word in line.words)


def has_letter(line: Line, letter: str) -> bool:
    """Check for a short flag, alone or in a cluster."""
    return any(word.text[:1] == "-" and word.text[1:2] != "-" and letter in word.text[1:] for word in line.words)
