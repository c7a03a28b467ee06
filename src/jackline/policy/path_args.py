"""Finds the path arguments of commands and of the agents' file tools. Pure; it has no code for specific programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.named import NamedTuple
from jackline.policy.builtin import flag_tables
from jackline.shell.model import Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.policy.command_line import CommandLine

HERE = Word(".", exact=True)
UNKNOWN_PATH = Word("$?", exact=False)


class PathChange(NamedTuple):
    """A path that is written or deleted; a container is a folder whose content changes."""

    word: Word
    deletes: bool = False
    is_container: bool = False
    is_worktree: bool = False  # a new worktree of the repository


def find_operands(line: CommandLine) -> tuple[Word, ...]:
    """Return the operands: words that are neither flags nor flag values of this program."""
    valued = flag_tables.ARGUMENTS.get(line.program, flag_tables.NO_FLAGS) | flag_tables.VALUED.get(
        line.program, flag_tables.NO_FLAGS
    )
    verb = line.words[line.operand_indexes[0]].text if line.operand_indexes else ""
    valued |= flag_tables.ARGUMENTS.get(f"{line.program} {verb}", flag_tables.NO_FLAGS)
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


def find_flag_values(line: CommandLine, names: Sequence[str]) -> Iterator[Word]:
    """Yield the values of these flags, in any spelling."""
    letters = frozenset(name[1] for name in names if len(name) == len("-o"))
    for index, word in enumerate(line.words):
        name, equals, value = word.text.partition("=")
        if equals and is_flag(name, names):
            yield word._replace(text=value)
        elif is_flag(word.text, names):
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


def is_flag(text: str, names: Sequence[str]) -> bool:
    """Check whether a word is one of these flags; many programs accept an abbreviated long flag."""
    shortened = text.startswith("--") and len(text) > len("--x") and any(name.startswith(text) for name in names)
    return text in names or shortened


def has_flag(line: CommandLine, flag: str) -> bool:
    """Check for a flag, with or without a value."""
    return any(word.text == flag or word.text.startswith(f"{flag}=") for word in line.words)


def has_letter(line: CommandLine, letter: str) -> bool:
    """Check for a short flag, alone or in a cluster."""
    return any(word.text[:1] == "-" and word.text[1:2] != "-" and letter in word.text[1:] for word in line.words)


# --- file tools of agents

_PATHS = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "target_file", "filename")
_PATCHES = ("input", "patch", "patchText", "diff")
_PATCHING = frozenset({"apply_patch", "patch"})
_DELETING = frozenset({"delete_file"})
_PATCH_LINE = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool"})  # one tool that also reads


def find_tool_changes(tool: str, given: Any) -> Iterator[PathChange]:  # noqa: ANN401 - any JSON
    """Yield the changes that a call of a file tool would make."""
    if not isinstance(given, dict):
        if tool in _PATCHING and isinstance(given, str):
            yield from find_patch_changes(given)
        return
    if tool in _EDITORS and given.get("command") == "view":
        return
    for name in _PATHS:
        path = given.get(name)
        if isinstance(path, str) and path:
            yield PathChange(_build_word(path), deletes=tool in _DELETING)
    for name in _PATCHES:
        if tool in _PATCHING and isinstance(given.get(name), str):
            yield from find_patch_changes(given[name])


def find_patch_changes(text: str) -> Iterator[PathChange]:
    """Yield the files of a patch in the `*** Update File:` format."""
    for verb, path in _PATCH_LINE.findall(text):
        yield PathChange(_build_word(path.rstrip()), deletes=verb == "Delete File")


def _build_word(path: str) -> Word:
    """These tools do not use a shell, but some expand `~`."""
    return Word(path, exact=not path.startswith("~"))
