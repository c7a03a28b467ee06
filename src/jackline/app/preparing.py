"""Prepares a project for `jackline init`: a settings file, a folder for tasks, skills, a line in .gitignore.

Existing content stays as it is, and running it again changes nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.app.keys import KEYS
from jackline.app.places import PROJECT_FILE
from jackline.app.skills import InitStep, list_skill_paths, write_pointer, write_skills
from jackline.app.trust import FOLDER, project_of
from jackline.errors import UsageError
from jackline.files import append_missing, create_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_TASKS = os.path.join(FOLDER, "tasks")
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


def prepare(folder: str, *, pointer: bool = False) -> list[InitStep]:
    """Create everything that is missing; a `pointer` in AGENTS.md only on request."""
    project = project_of(folder)
    for name in (PROJECT_FILE, _TASKS, ".gitignore", *list_skill_paths(pointer=pointer)):
        places.refuse_links(project, os.path.join(project, name))
    try:
        steps = [_write_settings(project), _make_task_folder(project), *_ignore_runs(project), *write_skills(project)]
        return [*steps, write_pointer(project)] if pointer else steps
    except OSError as error:
        raise UsageError(f"{error.filename or project} cannot be written: {error.strerror}") from None


def _write_settings(project: str) -> InitStep:
    path = os.path.join(project, PROJECT_FILE)
    wrote = create_file(path, settings_text())
    return InitStep(path, wrote, "settings, all commented out" if wrote else "settings")


def settings_text() -> str:
    """Render a settings file with everything that a project may set, commented out."""
    lines = (f"# {key.help}\n# {key.name} = {_format_toml(key.default)}\n" for key in KEYS if key.project)
    return _SETTINGS_HEAD + "\n".join(lines) + "\n" + _SETTINGS_TAIL


def _format_toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _make_task_folder(project: str) -> InitStep:
    path = os.path.join(project, _TASKS)
    existed = os.path.isdir(path)
    os.makedirs(path, exist_ok=True)
    return InitStep(path, wrote=not existed, what="a folder for tasks (NAME.md)")


def _ignore_runs(project: str) -> Iterator[InitStep]:
    """Keep the files of runs out of commits; only in a repository."""
    root = places.repository_of(project)
    if not os.path.exists(os.path.join(root, ".git")):
        return
    path = os.path.join(project, ".gitignore")
    yield InitStep(path, append_missing(path, _build_ignore_line), f"{_IGNORED} is kept out of commits")


def _build_ignore_line(text: bytes) -> bytes:
    if any(line.strip() in _IGNORE_LINES for line in text.splitlines()):
        return b""
    return (b"" if not text or text.endswith(b"\n") else b"\n") + f"{_IGNORED}\n".encode()
