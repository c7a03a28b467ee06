"""Tracks the working folder through `cd`, as far as the text shows it. Pure: it does not read the disk."""

from __future__ import annotations

from jackline.domain.shell.model import Word

MOVING = frozenset(["cd", "chdir", "pushd", "popd"])
SOURCING = frozenset([".", "source"])
_LONGEST_PATH = 4096  # PATH_MAX; a text of many `cd a` could build a longer path


def joined(folder: str | None, target: Word) -> str | None:
    """Resolve `target` from `folder`; None if unknown."""
    if not target.exact or not target.text or target.text.startswith("~"):
        return None
    if target.text.startswith("/"):
        return _normalize_path(target.text)
    return None if folder is None else _normalize_path(f"{folder}/{target.text}")


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


def moved(folder: str | None, words: tuple[Word, ...]) -> str | None:
    """Return the folder after `cd …`, assuming that it succeeds."""
    if words[0].text == "popd" or not all(word.exact for word in words):
        return None
    given = [word for word in words[1:] if word.text not in ("-L", "--")]
    if len(given) != 1 or given[0].text.startswith(("-", "+")):
        return None  # home, the previous folder, a stack entry, or a physical path
    return joined(folder, given[0])


def may_move(words: tuple[Word, ...]) -> bool:
    """Check whether a command runs in the shell itself and may change its folder."""
    program = words[0]
    if not program.exact or program.text in MOVING or program.text == "eval":
        return True
    return program.text in SOURCING and not (len(words) > 1 and words[1].text.endswith("/bin/activate"))
