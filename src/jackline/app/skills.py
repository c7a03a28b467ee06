"""The skills that `jackline init` gives to a project's agents, and the pointer to them in AGENTS.md.

A skill that is there stays as it is, edited or not; of AGENTS.md nothing is changed, only once something is added.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.trust import FOLDER
from jackline.files import append_missing, create_file
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("jackline", "pre-land-review", "commit")
POINTER = "AGENTS.md"
BEGIN, END = "<!-- jackline: begin -->", "<!-- jackline: end -->"
_TEXTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skills")
_POINTED = f"""\
{BEGIN}
## Cases, reviews and commits

Substantial tasks keep a case with `jackline case`, small ones do not. Read the skill before you begin one:
`.agents/skills/jackline/SKILL.md`; before a change lands `.agents/skills/pre-land-review/SKILL.md`; before a commit
`.agents/skills/commit/SKILL.md`.
{END}
"""


@stored_as("path wrote what")
class Step(NamedTuple):
    """One thing that was to be there; `wrote` is false if it was already."""

    path: str
    wrote: bool
    what: str


def paths(*, pointer: bool) -> tuple[str, ...]:
    """Where everything goes, seen from the project's folder."""
    return (*(path_of(name) for name in NAMES), *((POINTER,) if pointer else ()))


def path_of(name: str) -> str:
    """Where a skill lies."""
    return os.path.join(FOLDER, "skills", name, "SKILL.md")


def text_of(name: str) -> str:
    """What a skill says."""
    with open(os.path.join(_TEXTS, f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def write(project: str) -> Iterator[Step]:
    """Write the skills that are missing."""
    for name in NAMES:
        path = os.path.join(project, path_of(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        yield Step(path, create_file(path, text_of(name)), f"the skill {name}")


def point(project: str) -> Step:
    """Add the pointer to AGENTS.md, unless it is there."""
    path = os.path.join(project, POINTER)
    return Step(path, append_missing(path, _lacking), "a pointer to the skills")


def _lacking(text: bytes) -> bytes:
    return b"" if BEGIN.encode() in text else _gap(text) + _POINTED.encode()


def _gap(text: bytes) -> bytes:
    """An empty line between what is there and what is added."""
    if not text or text.endswith(b"\n\n"):
        return b""
    return b"\n" if text.endswith(b"\n") else b"\n\n"
