"""What `jackline init` puts into a project: settings to fill in, a folder for tasks, skills, a line in .gitignore.

It never changes what somebody wrote: what is there stays, and running it again changes nothing.
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
_SAME = frozenset({b".agents/runs/", b".agents/runs", b"/.agents/runs/", b"/.agents/runs", b".agents/", b".agents"})
_HEAD = """\
# Settings of jackline for this project. Every line is optional; what is commented out shows the default.
# `jackline config` says what counts and where it came from. Limits and timeouts can only be lowered here until a
# person has said `jackline trust`.

"""
_TAIL = """\
# Which program is an agent, and how it is started. It counts once a person has said `jackline trust`.
# [agents.claude]
# model = ""
# arguments = []
"""


def prepare(folder: str, *, pointer: bool = False) -> list[InitStep]:
    """Put everything there that is missing; a `pointer` in AGENTS.md only if it is wished."""
    project = project_of(folder)
    for name in (PROJECT_FILE, _TASKS, ".gitignore", *list_skill_paths(pointer=pointer)):
        places.refuse_links(project, os.path.join(project, name))
    try:
        steps = [*_settings(project), *_tasks(project), *_ignore(project), *write_skills(project)]
        return [*steps, write_pointer(project)] if pointer else steps
    except OSError as error:
        raise UsageError(f"{error.filename or project} cannot be written: {error.strerror}") from None


def _settings(project: str) -> Iterator[InitStep]:
    path = os.path.join(project, PROJECT_FILE)
    wrote = create_file(path, settings_text())
    yield InitStep(path, wrote, "settings, all commented out" if wrote else "settings")


def settings_text() -> str:
    """A settings file with everything that a project may set, commented out."""
    lines = (f"# {key.help}\n# {key.name} = {_toml(key.default)}\n" for key in KEYS if key.project)
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _tasks(project: str) -> Iterator[InitStep]:
    path = os.path.join(project, _TASKS)
    there = os.path.isdir(path)
    os.makedirs(path, exist_ok=True)
    yield InitStep(path, wrote=not there, what="a folder for tasks (NAME.md)")


def _ignore(project: str) -> Iterator[InitStep]:
    """Only in a repository; what runs leave behind is not to be committed."""
    root = places.repository_of(project)
    if not os.path.exists(os.path.join(root, ".git")):
        return
    path = os.path.join(project, ".gitignore")
    yield InitStep(path, append_missing(path, _not_ignored), f"{_IGNORED} is left out of commits")


def _not_ignored(text: bytes) -> bytes:
    if any(line.strip() in _SAME for line in text.splitlines()):
        return b""
    return (b"" if not text or text.endswith(b"\n") else b"\n") + f"{_IGNORED}\n".encode()
