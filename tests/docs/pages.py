"""The pages of the project as their readers see them: blocks of code, words in code, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
# A block that cannot run says why, in the line above it: <!-- not run: needs PostgreSQL -->
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_FENCE = re.compile(r"^ *```(.*)$")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block of code."""

    page: str
    line: int
    language: str
    text: str
    not_run: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[Block]:
    """Every fenced block of a page, in order."""
    return list(_blocks(name, read(name).splitlines()))


def _blocks(name: str, lines: list[str]) -> Iterator[Block]:
    start, language = 0, ""
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence and not start:
            start, language = number, fence[1].strip()
        elif fence:
            mark = _NOT_RUN.fullmatch(_above(lines, start).strip())
            yield Block(name, start, language, "\n".join(lines[start : number - 1]) + "\n", mark[1] if mark else "")
            start = 0
    assert not start, f"{name}:{start}: the block has no end"


def _above(lines: list[str], number: int) -> str:
    """The last line above this one that says anything."""
    return next((line for line in reversed(lines[: number - 1]) if line.strip()), "")


def all_blocks(language: str) -> list[Block]:
    """Those of every page in one language."""
    return [block for name in NAMES for block in blocks(name) if block.language == language]


def prose(name: str) -> str:
    """A page without its blocks."""
    shown, inside = [], False
    for line in read(name).splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            shown.append(line)
    return "\n".join(shown)


def inline_code(name: str) -> list[str]:
    """What stands between backticks in the prose of a page."""
    return _INLINE.findall(prose(name))


def links(name: str) -> list[str]:
    return _LINK.findall(prose(name))


def anchors(name: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    return {_slug(title) for title in _HEADING.findall(prose(name))}


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def commands(text: str) -> list[str]:
    """The lines of a shell block that do something, with broken lines put together."""
    whole = text.replace("\\\n", " ")
    return [line.strip() for line in whole.splitlines() if line.strip() and not line.lstrip().startswith("#")]
