"""Which variables a word of the shell sets otherwise than by `NAME=value` in front of it. It sets none itself."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_COUNTED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*+)\s*+(?:[-+*/%&^|]|<<|>>)?=(?!=)")
_DECLARING = frozenset(["export", "declare", "typeset", "local", "readonly"])
_NAMING = frozenset(["read", "mapfile", "readarray", "getopts", "unset"])  # their words are names


def unknown_value(name: str) -> Word:
    """The assignment of something that is known only when it runs."""
    return Word(f"{name}=", exact=False)


def assigned_by(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """What a command of the shell assigns by its words."""
    program, given = words[0].text, words[1:]
    if program in _DECLARING:
        found = tuple(word for word in given if _ASSIGNMENT.match(word.text))
        # Of a reference, what it stands for is set sooner or later.
        return (*found, *(unknown_value(word.text.partition("=")[2]) for word in found if _refers(given)))
    if program == "let":
        return tuple(name for word in given for name in counted(word.text))
    names = given if program in _NAMING else tuple(_printed(given)) if program == "printf" else ()
    return tuple(unknown_value(word.text) for word in names if _NAME.fullmatch(word.text))


def counted(numbers: str) -> Iterator[Word]:
    """What is assigned inside of `((…))`."""
    return (unknown_value(found[1]) for found in _COUNTED.finditer(numbers))


def _refers(words: tuple[Word, ...]) -> bool:
    return any(word.text[:1] == "-" and "n" in word.text for word in words)


def _printed(words: tuple[Word, ...]) -> Iterator[Word]:
    """The name of `printf -v NAME`."""
    for flag, after in pairwise(words):
        if flag.text == "-v":
            yield after
    yield from (word._replace(text=word.text[2:]) for word in words[:1] if word.text.startswith("-v"))
