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

_PATHS = frozenset(
    {"file_path", "filePath", "filepath", "notebook_path", "notebookPath", "absolute_path", "path", "target_file"}
    | {"targetFile", "TargetFile", "filename", "fileName", "file", "uri", "new_path", "newPath", "old_path", "oldPath"}
    | {"destination", "destination_path", "destinationPath", "source_path", "sourcePath", "target_path", "targetPath"}
    | {"paths", "files", "file_paths", "filePaths"}
)
_PATCHES = ("input", "patch", "patchText", "diff")
_PATCHING = frozenset({"apply_patch", "patch"})
_DELETING = frozenset({"delete_file"})
# The patch format of codex, which accepts spaces before a mark; and the header lines of diff.
_PATCH_LINE = re.compile(r"^[ \t]*\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_DIFF_LINE = re.compile(r"^(?:\+\+\+|---|rename to|copy to) (?:[ab]/)?([^\t\n]+)", re.MULTILINE)
_EDITORS = frozenset({"str_replace_editor", "str_replace_based_edit_tool"})  # one tool that also reads
_MOST_LEVELS = 6  # no tool nests its edits deeper


def find_tool_changes(tool: str, given: Any) -> Iterator[PathChange]:  # noqa: ANN401 - any JSON
    """Yield the changes that a call of a file tool would make; a list of edits may name a path for each."""
    if tool in _PATCHING:
        fields = given if isinstance(given, dict) else {"input": given}
        texts = (fields.get(name) for name in _PATCHES)
        for text in texts:
            yield from find_patch_changes(text) if isinstance(text, str) else ()
    if isinstance(given, dict) and not (tool in _EDITORS and given.get("command") == "view"):
        for path in _find_paths(given, _MOST_LEVELS):
            yield PathChange(_build_word(path), deletes=tool in _DELETING)


def _find_paths(value: Any, levels: int, name: str = "") -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        if value and name in _PATHS:
            yield value.removeprefix("file://")
    elif levels and isinstance(value, dict):
        for key, item in value.items():
            yield from _find_paths(item, levels - 1, str(key))
    elif levels and isinstance(value, list):
        for item in value:
            yield from _find_paths(item, levels - 1, name)


def find_patch_changes(text: str) -> Iterator[PathChange]:
    """Yield the files of a patch in the `*** Update File:` format, or of a diff."""
    found = _PATCH_LINE.findall(text)
    for verb, path in found or (("Update File", path) for path in _DIFF_LINE.findall(text)):
        if path.rstrip() != "/dev/null":
            yield PathChange(_build_word(path.rstrip()), deletes=verb == "Delete File")


def _build_word(path: str) -> Word:
    """These tools do not use a shell, but some expand `~`."""
    return Word(path, exact=not path.startswith("~"))
