"""The skills that `jackline init` gives to a project's agents, and the pointer to them in AGENTS.md.

A skill that is there stays as it is, edited or not; of AGENTS.md nothing is changed, only once something is added.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.trust import FOLDER
from jackline.files import append_missing, create_file
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SKILL_NAMES = ("jackline", "pre-land-review", "commit")
POINTER_FILE = "AGENTS.md"
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


class InitStep(NamedTuple):
    """One thing that was to be there; `wrote` is false if it was already."""

    path: str
    wrote: bool
    what: str


def list_skill_paths(*, pointer: bool) -> tuple[str, ...]:
    """Where everything goes, seen from the project's folder."""
    return (*(build_skill_path(name) for name in SKILL_NAMES), *((POINTER_FILE,) if pointer else ()))


def build_skill_path(name: str) -> str:
    """Where a skill lies."""
    return os.path.join(FOLDER, "skills", name, "SKILL.md")


def read_skill(name: str) -> str:
    """What a skill says."""
    with open(os.path.join(_TEXTS, f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def write_skills(project: str) -> Iterator[InitStep]:
    """Write the skills that are missing."""
    for name in SKILL_NAMES:
        path = os.path.join(project, build_skill_path(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        yield InitStep(path, create_file(path, read_skill(name)), f"the skill {name}")


def write_pointer(project: str) -> InitStep:
    """Add the pointer to AGENTS.md, unless it is there."""
    path = os.path.join(project, POINTER_FILE)
    return InitStep(path, append_missing(path, _lacking), "a pointer to the skills")


def _lacking(text: bytes) -> bytes:
    return b"" if BEGIN.encode() in text else _gap(text) + _POINTED.encode()


def _gap(text: bytes) -> bytes:
    """An empty line between what is there and what is added."""
    if not text or text.endswith(b"\n\n"):
        return b""
    return b"\n" if text.endswith(b"\n") else b"\n\n"
