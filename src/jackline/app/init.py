"""Prepares a project for `jackline init`: a settings file, a folder for tasks, skills, a line in .gitignore.

Existing content stays as it is, and running it again changes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.app.paths import PROJECT_FILE
from jackline.app.setting_keys import KEYS
from jackline.app.trust import AGENTS_FOLDER, find_project
from jackline.errors import UsageError
from jackline.files import append_missing, create_file
from jackline.named import NamedTuple, stored_as
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator

SKILL_NAMES = ("jackline", "pre-land-review", "commit")
POINTER_FILE = "AGENTS.md"
BEGIN, END = "<!-- jackline: begin -->", "<!-- jackline: end -->"
_SKILLS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skills")
_POINTER_TEXT = f"""\
{BEGIN}
## Cases, reviews and commits

Keep a case with `jackline case` for a substantial task, not for a small one. Read these skills:
`.agents/skills/jackline/SKILL.md` before you start a case, `.agents/skills/pre-land-review/SKILL.md` before a change
lands, `.agents/skills/commit/SKILL.md` before a commit.
{END}
"""


_TASKS = os.path.join(AGENTS_FOLDER, "tasks")
_IGNORED = ".agents/runs/"
_IGNORE_LINES = frozenset(
    {b".agents/runs/", b".agents/runs", b"/.agents/runs/", b"/.agents/runs", b".agents/", b".agents"}
)
_SETTINGS_HEAD = """\
# Settings of jackline for this project. Every line is optional; a commented line shows the default.
# `jackline config` shows each value and its source. Until a person runs `jackline trust`, limits and timeouts can
# only be lowered here.

"""
_SETTINGS_TAIL = """\
# The program and arguments of an agent. They take effect after a person runs `jackline trust`.
# [agents.claude]
# model = ""
# arguments = []
"""


@stored_as("path wrote what")
class InitStep(NamedTuple):
    """One file or folder of `init`; `wrote` is false if it already existed."""

    path: str
    wrote: bool
    what: str


def prepare_project(folder: str, *, skills: bool = False, pointer: bool = False) -> list[InitStep]:
    """Create everything that is missing; skills and the `pointer` to them in AGENTS.md only on request."""
    project = find_project(folder)
    skill_paths = list_skill_paths(pointer=pointer) if skills else ()
    for name in (PROJECT_FILE, _TASKS, ".gitignore", *skill_paths):
        paths.refuse_links(project, os.path.join(project, name))
    try:
        path = os.path.join(project, PROJECT_FILE)
        wrote = create_file(path, render_settings())
        steps = [InitStep(path=path, wrote=wrote, what="settings, all commented out" if wrote else "settings")]
        path = os.path.join(project, _TASKS)
        steps.append(InitStep(path=path, wrote=not os.path.isdir(path), what="a folder for tasks (NAME.md)"))
        os.makedirs(path, exist_ok=True)
        if os.path.exists(os.path.join(find_worktree(project), ".git")):
            path = os.path.join(project, ".gitignore")
            wrote = append_missing(path, _build_ignore_line)
            steps.append(InitStep(path=path, wrote=wrote, what=f"{_IGNORED} is kept out of commits"))
        if skills:
            steps += write_skills(project)
        return [*steps, write_pointer(project)] if pointer else steps
    except OSError as error:
        raise UsageError(f"{error.filename or project} cannot be written: {error.strerror}") from None


def has_all_skills(folder: str) -> bool:
    """Whether the project of the folder has every skill."""
    project = find_project(folder)
    return all(os.path.lexists(os.path.join(project, build_skill_path(name))) for name in SKILL_NAMES)


def list_skill_paths(*, pointer: bool) -> tuple[str, ...]:
    """The paths of all files, relative to the project."""
    return (*(build_skill_path(name) for name in SKILL_NAMES), *((POINTER_FILE,) if pointer else ()))


def build_skill_path(name: str) -> str:
    """The path of a skill, relative to the project."""
    return os.path.join(AGENTS_FOLDER, "skills", name, "SKILL.md")


def read_skill(name: str) -> str:
    """The text of a skill."""
    with open(os.path.join(_SKILLS, f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def write_skills(project: str) -> Iterator[InitStep]:
    """Write missing skills."""
    for name in SKILL_NAMES:
        path = os.path.join(project, build_skill_path(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        yield InitStep(path=path, wrote=create_file(path, read_skill(name)), what=f"the skill {name}")


def write_pointer(project: str) -> InitStep:
    """Add the pointer to AGENTS.md, unless it has one."""
    path = os.path.join(project, POINTER_FILE)
    return InitStep(path=path, wrote=append_missing(path, _build_missing_pointer), what="a pointer to the skills")


def _build_missing_pointer(text: bytes) -> bytes:
    """The section to append to AGENTS.md, after an empty line; nothing if it is there."""
    if BEGIN.encode() in text:
        return b""
    gap = b"" if not text or text.endswith(b"\n\n") else b"\n" if text.endswith(b"\n") else b"\n\n"
    return gap + _POINTER_TEXT.encode()


def render_settings() -> str:
    """Render a settings file with everything that a project may set, commented out."""
    lines = (f"# {key.help}\n# {key.name} = {_format_toml(key.default)}\n" for key in KEYS if key.project)
    return _SETTINGS_HEAD + "\n".join(lines) + "\n" + _SETTINGS_TAIL


def _format_toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _build_ignore_line(text: bytes) -> bytes:
    if any(line.strip() in _IGNORE_LINES for line in text.splitlines()):
        return b""
    return (b"" if not text or text.endswith(b"\n") else b"\n") + f"{_IGNORED}\n".encode()
