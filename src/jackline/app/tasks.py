"""Finding tasks: the project's own, then the user's, then those that come with jackline. It starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.app.keys import KEYS
from jackline.app.texts import named, regular_text
from jackline.domain import ids
from jackline.domain.task import BUILT_IN as SHIPPED
from jackline.domain.task import PROJECT, USER, parse
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.task import Task

PROJECT_FOLDER = os.path.join(".agents", "tasks")
BUILT_IN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tasks")
_END = ".md"
_LONGEST = 1024 * 1024
# What a project may set, a task may: both are written by whoever writes the project.
SETTINGS = tuple(key.name for key in KEYS if key.project and (key.choices or not isinstance(key.default, str)))


class Listed(NamedTuple):
    """One task that can be asked for, or a file that should be one."""

    name: str
    origin: str  # project, user or built in
    path: str
    task: Task | None
    problem: str = ""


def find(name: str, folder: str, environ: Mapping[str, str]) -> Task:
    """The task of that name; the project's own before the user's before the built-in one."""
    origin, path = next(_files(name, folder, environ), ("", ""))
    if not path:
        raise UsageError(_unknown(name, folder, environ))
    return _read(name, origin, path)


def hidden_by(task: Task, folder: str, environ: Mapping[str, str]) -> str:
    """The user's or built-in file that a project's task of the same name stands before, if there is one."""
    others = (path for origin, path in _files(task.name, folder, environ) if origin != PROJECT)
    return next(others, "") if task.origin == PROJECT else ""


def _files(name: str, folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every file of that name, the nearest first; also one that cannot be read, because it was meant."""
    for origin, place in _places(folder, environ) if ids.is_chosen(name) else ():
        path = os.path.join(place, name + _END)
        if os.path.lexists(path):
            yield origin, path


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
        raise UsageError(f"'{named(name)}' cannot be a task's name: use up to 64 letters, digits, '.', '_' and '-'")
    root = places.repository_of(folder)
    path = os.path.join(root, PROJECT_FOLDER, name + _END)
    places.refuse_links(root, path)
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
        yield PROJECT, os.path.join(here, PROJECT_FOLDER)
        if here == root:
            break
        here = os.path.dirname(here)
    yield USER, os.path.join(places.config_folder(environ), "tasks")
    yield SHIPPED, BUILT_IN


def _names(place: str) -> list[str]:
    try:
        files = sorted(os.listdir(place))
    except OSError:
        return []
    return [name[: -len(_END)] for name in files if name.endswith(_END) and ids.is_chosen(name[: -len(_END)])]


def _listed(name: str, origin: str, path: str) -> Listed:
    try:
        return Listed(name, origin, path, _read(name, origin, path))
    except UsageError as error:
        return Listed(name, origin, path, None, str(error))


def _read(name: str, origin: str, path: str) -> Task:
    if origin == PROJECT:
        _refuse_outside(path, path.removesuffix(os.path.join(os.sep, PROJECT_FOLDER, name + _END)) or os.sep)
    return parse(name, regular_text(path, _LONGEST), path, SETTINGS)._replace(origin=origin)


def _refuse_outside(path: str, folder: str) -> None:
    root = places.repository_of(folder)
    if not os.path.realpath(path).startswith(os.path.join(root, "")):
        raise UsageError(f"{path} leads out of the project by a link: put the task itself there")


def _unknown(name: str, folder: str, environ: Mapping[str, str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [name for _, place in _places(folder, environ) for name in _names(place)], n=3)
    question = f" did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    return (
        f"no task is called '{named(name)}':{question} `jackline tasks list` shows them, `jackline tasks new` makes one"
    )
