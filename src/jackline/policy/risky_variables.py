"""Finds variables that make a harmless program run other code, or write a file. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jackline.policy.builtin import risky_options
from jackline.policy.builtin.flag_tables import NO_FLAGS
from jackline.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.shell.model import ShellCommand

_GIT_TRACE = "GIT_TRACE"
_PATHS = ("/", "~", "..", "$", "`")


def has_risky_variables(command: ShellCommand, program: str) -> bool:
    """Check whether a variable of the command, or of its shell, may make it run other code."""
    return bool(command.assignments) and _has_risky_assignments(command.assignments, program)


@lru_cache(maxsize=64)
def _has_risky_assignments(assignments: tuple[Word, ...], program: str) -> bool:
    return any(_is_risky(word, program) for word in assignments)


def needs_whole_key(command: ShellCommand, program: str) -> bool:
    """Check whether a variable changes so much that only the whole command identifies an effect."""
    for word in command.assignments:
        name, value = _split_assignment(word)
        whole = f"{name}={value}"
        if whole.startswith(risky_options.HOMES) and program in risky_options.KEYED_CONFIGURED:
            return True
        if whole.startswith(risky_options.KEYED_VARIABLES) and not _is_harmless(name, whole):
            return True
    return False


def _is_harmless(name: str, whole: str) -> bool:
    return (
        name.startswith(_GIT_TRACE)
        or whole in risky_options.HARMLESS_WHOLE
        or whole.startswith(risky_options.HARMLESS_VARIABLES)
    )


def _is_risky(word: Word, program: str) -> bool:
    name, value = _split_assignment(word)
    whole = f"{name}={value}"
    if whole.startswith(risky_options.HOMES):
        return program in risky_options.CONFIGURED
    own = risky_options.PROGRAM_VARIABLES.get(program, NO_FLAGS)
    if not whole.startswith((*risky_options.VARIABLES, *own)):
        return False
    if name.startswith(_GIT_TRACE):  # a descriptor, a switch or a file; anything else is a socket
        return ":" in value
    if _is_harmless(name, whole):
        return False
    risky_values = risky_options.RISKY_VALUES.get(name)
    if risky_values is not None and word.exact:
        return any(text in value for text in risky_values)
    is_trusted = name in risky_options.PLACES and value.startswith(risky_options.TRUSTED_FOLDERS)
    return not (is_trusted and ":" not in value and "/.." not in value)


def find_output_variables(command: ShellCommand, program: str, *, only_reads: bool) -> Iterator[Word]:
    """Yield the files that a program writes because a variable says so."""
    for word in command.assignments:
        name, value = _split_assignment(word)
        is_trace = program == "git" and name.startswith(_GIT_TRACE)
        if (is_trace or (not only_reads and f"{name}=" in risky_options.OUTPUT_VARIABLES)) and value.startswith(_PATHS):
            yield Word(value, word.exact)


def _split_assignment(word: Word) -> tuple[str, str]:
    name, _, value = word.text.partition("=")
    return name.removesuffix("+"), value
