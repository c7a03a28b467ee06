"""Finds git commands that discard work which no commit holds: `git reset --hard`, `git clean -f` and similar. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.policy import command_line, path_zones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.policy.call_context import CallContext
    from jackline.shell.model import ShellCommand, Word


class Discard(NamedTuple):
    """One command that discards work."""

    verb: str  # reset, clean, …
    folder: str  # where it runs; empty if unknown
    deletes_ignored: bool = False  # also files that git ignores
    deletes_nested: bool = False  # also repositories inside this one, or submodules
    paths: tuple[str, ...] = ()  # only these
    command: str = ""


def find_discards(commands: Sequence[ShellCommand], where: CallContext) -> tuple[Discard, ...]:
    """Return the commands of a call that discard work, in order."""
    found = (_find_discard(one, where) for one in commands if one.words and one.words[0].text.endswith(("git", "hub")))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _find_discard(command: ShellCommand, where: CallContext) -> Discard | None:
    line = command_line.parse_line(command.words)
    if line.program != "git" or not line.operand_indexes:
        return None
    start = line.operand_indexes[0]
    verb, words = line.words[start].text, line.words[start + 1 :]
    texts = [word.text for word in words]
    end = texts.index("--") if "--" in texts else len(texts)
    flags = [text for text in texts[:end] if text.startswith("-") and text != "-"]
    short = [text[1:] for text in flags if not text.startswith("--")]
    # After `-e` of `git clean` the rest of the word is a pattern.
    letters = "".join(text.partition("e")[0] if verb == "clean" else text for text in short)
    operands = [text for text in texts[:end] if not text.startswith("-")]
    if not _discards_work(verb, flags, letters, operands, has_paths="--" in texts):
        return None
    return Discard(
        verb=verb,
        folder=_find_folder(command, line.words[:start], where),
        deletes_ignored=verb == "clean" and ("x" in letters or "X" in letters),
        deletes_nested=(verb == "clean" and letters.count("f") + flags.count("--force") > 1)
        or any(text.startswith("--recurse-sub") for text in flags),
        paths=tuple(text for text in texts if not text.startswith("-"))
        if verb == "clean" and _are_exact(words)
        else (),
        command=f"git {verb} {' '.join(flags)}".rstrip(),
    )


def _discards_work(verb: str, flags: list[str], letters: str, operands: list[str], *, has_paths: bool) -> bool:
    match verb:
        case "reset":
            return any(len(flag) > len("--m") and name.startswith(flag) for flag in flags for name in _RESETS)
        case "clean":
            return "n" not in letters and not any(
                "--dry-run".startswith(flag) for flag in flags if len(flag) > len("--")
            )
        case "checkout":
            creates = "b" in letters or "B" in letters or "--orphan" in flags
            names_files = has_paths or len(operands) > 1 or any(_looks_like_path(one) for one in operands)
            return "f" in letters or "--force" in flags or (names_files and not creates)
        case "restore":
            staged, worktree = ("S" in letters or "--staged" in flags), ("W" in letters or "--worktree" in flags)
            return worktree or not staged
        case "switch":
            return "f" in letters or "--force" in flags or "--discard-changes" in flags
        case "stash":
            return operands[:1] in (["drop"], ["clear"])
        case "rm" | "checkout-index":
            return "f" in letters or "--force" in flags
        case "read-tree":
            return "u" in letters and "--reset" in flags
    return False


_RESETS = ("--hard", "--merge")


def _looks_like_path(text: str) -> bool:
    """Check for `.` or a file with an extension; a branch has none."""
    return text in {".", ":/"} or text.startswith(("./", "../")) or "." in text.rpartition("/")[2].lstrip(".")


def _are_exact(words: Sequence[Word]) -> bool:
    return all(word.exact for word in words)


def _find_folder(command: ShellCommand, words: Sequence[Word], where: CallContext) -> str:
    """Return the folder of the command with its `-C`; empty if it is unknown, or if another repository is named."""
    if command.folder is None or any(word.text.startswith(("--git-dir", "--work-tree")) for word in words):
        return ""
    if any(word.text.startswith(("GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=")) for word in command.assignments):
        return ""
    folder = path_zones.resolve_path(command.folder, where.folder)
    for word, after in pairwise(words):
        if word.text == "-C":
            if not after.exact:
                return ""
            folder = path_zones.resolve_path(after.text, folder)
    return folder
