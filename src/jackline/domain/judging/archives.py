"""Finds the paths that archive programs write or delete, by their arguments. Pure: it does not read the disk."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from jackline.domain.judging import given
from jackline.domain.judging.given import HERE, NOBODY_KNOWS, Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.domain.judging.arguments import Line
    from jackline.domain.shell import Word

_TAR_VALUED = frozenset("fCFgITXbHKLNV")  # letters with a value
_TAR_LONG = {
    "--file": "f", "--directory": "C", "--create": "c", "--append": "r", "--update": "u", "--delete": "D",
    "--listed-incremental": "g", "--index-file": "g", "--one-top-level": "C", "--absolute-names": "P",
}  # fmt: skip


def tar(line: Line, _: Sequence[Word]) -> Iterator[Change]:
    """Yield the folder that tar extracts to, or the archive that it writes."""
    flags = list(_parse_tar_flags(line.words))
    letters = {letter for letter, _ in flags}
    if letters & set("cruAD"):
        archive = next((word for letter, word in flags if letter == "f"), None)
        elsewhere = archive is not None and ":" in archive.text and not given.has(line, "--force-local")
        yield Change(NOBODY_KNOWS if elsewhere else archive or HERE, is_container=archive is None)
        if given.has(line, "--remove-files"):
            yield Change(NOBODY_KNOWS, deletes=True)
    else:
        folders = [word for letter, word in flags if letter == "C" and word.text]
        yield from (Change(word, is_container=True) for word in folders or (HERE,))
        if "P" in letters:  # absolute names in the archive may lead anywhere
            yield Change(NOBODY_KNOWS)
    yield from (Change(word) for letter, word in flags if letter == "g")


def _parse_tar_flags(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """Yield each letter with its value. The first word may lack the dash; its values follow in order."""
    left = deque(words)
    old = bool(left) and not left[0].text.startswith("-")
    while left:
        word = left.popleft()
        name, equals, value = word.text.partition("=")
        if word.text.startswith("--"):
            letter = next((short for long, short in _TAR_LONG.items() if given.means(name, (long,))), "")
            takes = letter in _TAR_VALUED and not equals and name != "--one-top-level"
            yield letter, left.popleft() if takes and left else word._replace(text=value)
        elif old or word.text.startswith("-"):
            yield from _parse_tar_letters(word, left, old=old)
        old = False


def _parse_tar_letters(word: Word, left: deque[Word], *, old: bool) -> Iterator[tuple[str, Word]]:
    letters = word.text.removeprefix("-")
    for place, letter in enumerate(letters):
        joined = letters[place + 1 :]
        if letter not in _TAR_VALUED:
            yield letter, word._replace(text="")
        elif joined and not old:
            yield letter, word._replace(text=joined)
            return
        else:
            yield letter, left.popleft() if left else NOBODY_KNOWS


def zip_(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """Yield the archive; with -m, also the packed files, which are deleted."""
    yield from (Change(word) for word in (*named[:1], *given.values(line, ("-b", "-O", "--out"))))
    if given.has_letter(line, "m") or given.has(line, "--move"):
        yield from (Change(word, deletes=True) for word in named[1:])


def seven(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """Yield the paths of `7z a archive file` and `7z x archive -ofolder`."""
    folders = [word._replace(text=word.text[2:]) for word in line.words if word.text.startswith("-o")]
    yield from (Change(word, is_container=True) for word in folders)
    packs = bool(named) and named[0].text in {"a", "u", "d", "rn"}
    yield from (Change(word) for word in named[1:2] if packs)
    if "-sdel" in {word.text for word in line.words}:
        yield from (Change(word, deletes=True) for word in named[2:])
    if not folders and not packs:
        yield Change(HERE, is_container=True)


def zstd(line: Line, named: Sequence[Word]) -> Iterator[Change]:
    """Yield the output files; with --rm, also the sources, which are deleted."""
    outputs = [*given.values(line, ("-o", "--output-dir-flat", "--output-dir-mirror"))]
    yield from (Change(word) for word in outputs or named)
    if given.has(line, "--rm"):
        yield from (Change(word, deletes=True) for word in named if word not in outputs)
