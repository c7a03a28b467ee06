"""Where a command runs after `cd`, as far as the text can say. Pure: no folder is looked at."""

from __future__ import annotations

from jackline.domain.shell.model import Word

MOVING = frozenset(["cd", "chdir", "pushd", "popd"])
SOURCING = frozenset([".", "source"])
_LONGEST = 4096  # no folder has a longer path, and a text of nothing but `cd a` would make one


def joined(folder: str | None, target: Word) -> str | None:
    """The folder that `target` names, seen from `folder`; None where nobody knows."""
    if not target.exact or not target.text or target.text.startswith("~"):
        return None
    if target.text.startswith("/"):
        return _tidy(target.text)
    return None if folder is None else _tidy(f"{folder}/{target.text}")


def _tidy(path: str) -> str | None:
    """`a/./b/..` as a shell's own `cd` reads it."""
    absolute = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", ".") and not (part == ".." and absolute):
            kept.append(part)
    tidied = "/" + "/".join(kept) if absolute else "/".join(kept) or "."
    return tidied if len(tidied) <= _LONGEST else None


def moved(folder: str | None, words: tuple[Word, ...]) -> str | None:
    """Where the shell is after `cd …`; it is taken to succeed."""
    if words[0].text == "popd" or not all(word.exact for word in words):
        return None
    given = [word for word in words[1:] if word.text not in ("-L", "--")]
    if len(given) != 1 or given[0].text.startswith(("-", "+")):
        return None  # home, the folder before, a place on the stack, or a physical path
    return joined(folder, given[0])


def may_move(words: tuple[Word, ...]) -> bool:
    """True for a command that runs in the shell itself and may change its folder."""
    program = words[0]
    if not program.exact or program.text in MOVING or program.text == "eval":
        return True
    return program.text in SOURCING and not (len(words) > 1 and words[1].text.endswith("/bin/activate"))
