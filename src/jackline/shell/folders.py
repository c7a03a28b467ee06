"""Computes the folder of a shell after `cd`. Pure: it reads no disk."""

from __future__ import annotations

from jackline.shell.model import Word

FOLDER_COMMANDS = frozenset(["cd", "chdir", "pushd", "popd"])
SOURCE_COMMANDS = frozenset([".", "source"])
_LONGEST_PATH = 4096  # PATH_MAX; a text of many `cd a` could build a longer path


def join_folder(folder: str | None, target: Word) -> str | None:
    """Resolve `target` from `folder`; None if unknown."""
    if not target.exact or not target.text or target.text.startswith("~"):
        return None
    if target.text.startswith("/"):
        return _normalize_path(target.text)
    if folder is None:
        return None
    whole = f"{folder}/{target.text}"
    # The folder is already normal: a plain name leaves it so, however many of them follow each other.
    is_plain = folder not in (".", "/") and "/" not in target.text and target.text not in (".", "..")
    return whole if is_plain and len(whole) <= _LONGEST_PATH else _normalize_path(whole)


def _normalize_path(path: str) -> str | None:
    """Normalize a path such as `a/./b/..` the way `cd` does."""
    absolute = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", ".") and not (part == ".." and absolute):
            kept.append(part)
    tidied = "/" + "/".join(kept) if absolute else "/".join(kept) or "."
    return tidied if len(tidied) <= _LONGEST_PATH else None


def find_new_folder(folder: str | None, words: tuple[Word, ...]) -> str | None:
    """Return the folder after `cd …`, assuming that it succeeds."""
    if words[0].text == "popd" or not all(word.exact for word in words):
        return None
    given = [word for word in words[1:] if word.text not in ("-L", "--")]
    if len(given) != 1 or given[0].text.startswith(("-", "+")):
        return None  # home, the previous folder, a stack entry, or a physical path
    return join_folder(folder, given[0])


def may_change_folder(words: tuple[Word, ...]) -> bool:
    """Check whether a command runs in the shell itself and may change its folder."""
    program = words[0]
    if not program.exact or program.text in FOLDER_COMMANDS or program.text == "eval":
        return True
    return program.text in SOURCE_COMMANDS and not (len(words) > 1 and words[1].text.endswith("/bin/activate"))
