"""The words of a command that name paths: after flags, and between them. Pure; it knows no program by name."""

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
    """A path, and what becomes of it; a container is a folder in which things change."""

    word: Word
    deletes: bool = False
    is_container: bool = False


def named(line: Line) -> tuple[Word, ...]:
    """The words that are neither flags nor values of flags, by what is known of this very program."""
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
    """What is given to these flags, however it is joined to them."""
    letters = frozenset(name[1] for name in names if len(name) == len("-o"))
    for index, word in enumerate(line.words):
        name, equals, value = word.text.partition("=")
        if equals and means(name, names):
            yield word._replace(text=value)
        elif means(word.text, names):
            yield from line.words[index + 1 : index + 2]
        elif (joined := _joined(word.text, letters)) is not None:
            yield from (word._replace(text=joined),) if joined else line.words[index + 1 : index + 2]


def _joined(text: str, letters: frozenset[str]) -> str | None:
    """What stands behind the letter in `-fsSLo/file`; empty: its value is the next word; None: it is not there."""
    if text[:1] != "-" or text[1:2] in {"", "-"}:
        return None
    for place, letter in enumerate(text[1:], 1):
        if letter in letters:
            return text[place + 1 :]
        if not letter.isalpha():
            return None
    return None


def means(text: str, names: Sequence[str]) -> bool:
    """A flag by its name; many programs take a long one by its beginning, too."""
    shortened = text.startswith("--") and len(text) > len("--x") and any(name.startswith(text) for name in names)
    return text in names or shortened


def has(line: Line, flag: str) -> bool:
    """Whether a flag stands there, alone or with its value."""
    return any(word.text == flag or word.text.startswith(f"{flag}=") for word in line.words)


def has_letter(line: Line, letter: str) -> bool:
    """Whether a short flag stands there, also among others."""
    return any(word.text[:1] == "-" and word.text[1:2] != "-" and letter in word.text[1:] for word in line.words)
