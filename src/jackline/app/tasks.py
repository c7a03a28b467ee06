"""Finding tasks: the project's own, then the user's, then those that come with jackline. It starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from jackline.app import places
from jackline.app.config import KEYS
from jackline.domain import ids
from jackline.domain.task import parse
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.task import Task

PROJECT_FOLDER = os.path.join(".agents", "tasks")
BUILT_IN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tasks")
_END = ".md"
_LONGEST = 1024 * 1024
# What a project may set, a task may: both are written by whoever writes the project.
SETTINGS = tuple(key.name for key in KEYS if key.project and not isinstance(key.default, str))


class Listed(NamedTuple):
    """One task that can be asked for, or a file that should be one."""

    name: str
    origin: str  # project, user or built in
    path: str
    task: Task | None
    problem: str = ""


def find(name: str, folder: str, environ: Mapping[str, str]) -> Task:
    """The task of that name; the project's own before the user's before the built-in one."""
    for _, place in _places(folder, environ):
        path = os.path.join(place, name + _END)
        if ids.is_chosen(name) and os.path.isfile(path):
            return _read(name, path)
    raise UsageError(_unknown(name, folder, environ))


def every(folder: str, environ: Mapping[str, str]) -> list[Listed]:
    """All tasks by name, each where it is found first; one that cannot be read says why."""
    found: dict[str, Listed] = {}
    for origin, place in _places(folder, environ):
        for name in _names(place):
            if name not in found:
                found[name] = _listed(name, origin, os.path.join(place, name + _END))
    return [found[name] for name in sorted(found)]


def new(name: str, description: str, folder: str) -> str:
    """Write a task into the project to begin with; gives back its path. One that is there is left alone."""
    if not ids.is_chosen(name):
        raise UsageError(f"'{name}' cannot be a task's name: use up to 64 letters, digits, '.', '_' and '-'")
    path = os.path.join(places.repository_of(folder), PROJECT_FOLDER, name + _END)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(_TEMPLATE.replace("DESCRIPTION", _quoted(description or "What this task is for")))
    except FileExistsError:
        raise UsageError(f"{path} exists already: edit it, or choose another name") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path


_TEMPLATE = """\
---
description: DESCRIPTION
# agents: [claude, codex]
# proof: make test
# timeout_seconds: 900
requires_commit: false
# var.name: its default
---
You work in {workspace}. Say here what is to be done, and how it is known to be done.
"""


def _quoted(text: str) -> str:
    import json

    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def _places(folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    here, root = os.path.realpath(folder), places.repository_of(folder)
    while True:  # outside a repository the folder itself is looked at, and nothing above it
        yield "project", os.path.join(here, PROJECT_FOLDER)
        if here == root:
            break
        here = os.path.dirname(here)
    home = environ.get("HOME") or os.path.expanduser("~")
    yield "user", os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "jackline", "tasks")
    yield "built in", BUILT_IN


def _names(place: str) -> list[str]:
    try:
        files = sorted(os.listdir(place))
    except OSError:
        return []
    return [name[: -len(_END)] for name in files if name.endswith(_END) and ids.is_chosen(name[: -len(_END)])]


def _listed(name: str, origin: str, path: str) -> Listed:
    try:
        return Listed(name, origin, path, _read(name, path))
    except UsageError as error:
        return Listed(name, origin, path, None, str(error))


def _read(name: str, path: str) -> Task:
    try:
        with open(path, "rb") as file:
            data = file.read(_LONGEST + 1)
        text = data.decode()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8") from None
    if len(data) > _LONGEST:
        raise UsageError(f"{path} is larger than {_LONGEST} bytes")
    return parse(name, text, path, SETTINGS)


def _unknown(name: str, folder: str, environ: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [name for _, place in _places(folder, environ) for name in _names(place)], n=3)
    question = f" did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    return f"no task is called '{name}':{question} `jackline tasks list` shows them, `jackline tasks new` makes one"
