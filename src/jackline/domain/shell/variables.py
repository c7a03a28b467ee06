"""Finds variables that shell builtins and arithmetic assign, other than by a leading `NAME=value`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.domain.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_COUNTED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*+)\s*+(?:[-+*/%&^|]|<<|>>)?=(?!=)")
_DECLARING = frozenset(["export", "declare", "typeset", "local", "readonly"])
_NAMING = frozenset(["read", "mapfile", "readarray", "getopts", "unset"])  # their arguments are variable names


def unknown_value(name: str) -> Word:
    """Build an assignment whose value is only known at run time."""
    return Word(f"{name}=", exact=False)


def assigned_by(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the assignments that a shell builtin makes by its arguments."""
    program, given = words[0].text, words[1:]
    if program in _DECLARING:
        found = tuple(word for word in given if _ASSIGNMENT.match(word.text))
        is_reference = any(word.text[:1] == "-" and "n" in word.text for word in given)
        # With `declare -n`, the referenced variable may be assigned later.
        return (*found, *(unknown_value(word.text.partition("=")[2]) for word in found if is_reference))
    if program == "let":
        return tuple(name for word in given for name in counted(word.text))
    names = given if program in _NAMING else tuple(_find_printf_names(given)) if program == "printf" else ()
    return tuple(unknown_value(word.text) for word in names if _VARIABLE_NAME.fullmatch(word.text))


def counted(numbers: str) -> Iterator[Word]:
    """Return the assignments inside `((…))`."""
    return (unknown_value(found[1]) for found in _COUNTED.finditer(numbers))


def _find_printf_names(words: tuple[Word, ...]) -> Iterator[Word]:
    """Yield the name in `printf -v NAME`."""
    for flag, after in pairwise(words):
        if flag.text == "-v":
            yield after
    yield from (word._replace(text=word.text[2:]) for word in words[:1] if word.text.startswith("-v"))
