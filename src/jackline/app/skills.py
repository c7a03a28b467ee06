"""Writes the skills of `jackline init` into a project, and a pointer to them into AGENTS.md.

An existing skill is never changed. AGENTS.md gets one section once; its other content stays unchanged.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.trust import FOLDER
from jackline.files import append_missing, create_file
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

SKILL_NAMES = ("jackline", "pre-land-review", "commit")
POINTER_FILE = "AGENTS.md"
BEGIN, END = "<!-- jackline: begin -->", "<!-- jackline: end -->"
_TEXTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skills")
_POINTER_TEXT = f"""\
{BEGIN}
## Cases, reviews and commits

Substantial tasks keep a case with `jackline case`, small ones do not. Read the skill before you begin one:
`.agents/skills/jackline/SKILL.md`; before a change lands `.agents/skills/pre-land-review/SKILL.md`; before a commit
`.agents/skills/commit/SKILL.md`.
{END}
"""


@stored_as("path wrote what")
class InitStep(NamedTuple):
    """One file or folder of `init`; `wrote` is false if it already existed."""

    path: str
    wrote: bool
    what: str


def list_skill_paths(*, pointer: bool) -> tuple[str, ...]:
    """The paths of all files, relative to the project."""
    return (*(build_skill_path(name) for name in SKILL_NAMES), *((POINTER_FILE,) if pointer else ()))


def build_skill_path(name: str) -> str:
    """The path of a skill, relative to the project."""
    return os.path.join(FOLDER, "skills", name, "SKILL.md")


def read_skill(name: str) -> str:
    """The text of a skill."""
    with open(os.path.join(_TEXTS, f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def write_skills(project: str) -> Iterator[InitStep]:
    """Write missing skills."""
    for name in SKILL_NAMES:
        path = os.path.join(project, build_skill_path(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        yield InitStep(path, create_file(path, read_skill(name)), f"the skill {name}")


def write_pointer(project: str) -> InitStep:
    """Add the pointer to AGENTS.md, unless it has one."""
    path = os.path.join(project, POINTER_FILE)
    return InitStep(path, append_missing(path, _build_missing_pointer), "a pointer to the skills")


def _build_missing_pointer(text: bytes) -> bytes:
    """The section to append to AGENTS.md, after an empty line; nothing if it is there."""
    if BEGIN.encode() in text:
        return b""
    gap = b"" if not text or text.endswith(b"\n\n") else b"\n" if text.endswith(b"\n") else b"\n\n"
    return gap + _POINTER_TEXT.encode()
