"""Finds and creates task files: the project's own, then the user's, then the built-in ones. Starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.app.setting_keys import KEYS, suggest_nearest
from jackline.app.text_files import read_regular_text, shorten_name
from jackline.domain import ids
from jackline.domain.task import BUILT_IN as SHIPPED
from jackline.domain.task import PROJECT, USER, parse_task
from jackline.errors import UsageError
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.domain.task import Task

PROJECT_FOLDER = os.path.join(".agents", "tasks")
BUILT_IN_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tasks")
_SUFFIX = ".md"
_FILE_LIMIT = 1024 * 1024
# A task may set what a project may: the same people write both.
TASK_SETTINGS = tuple(key.name for key in KEYS if key.project and (key.choices or not isinstance(key.default, str)))


class ListedTask(NamedTuple):
    """An available task, or an invalid task file."""

    name: str
    origin: str  # project, user or built in
    path: str
    task: Task | None
    problem: str = ""


def find_task(name: str, folder: str, environ: Mapping[str, str]) -> Task:
    """Find a task by name; the project's own comes before the user's, which comes before the built-in one."""
    origin, path = next(_find_files(name, folder, environ), ("", ""))
    if path:
        return _read_task(name, origin, path)
    known = dict.fromkeys(one for _, place in _list_folders(folder, environ) for one in _list_names(place))
    raise UsageError(
        f"no task is called '{shorten_name(name)}':{suggest_nearest(name, known)} "
        "`jackline tasks list` lists them, `jackline tasks new` creates one"
    )


def find_hidden_file(task: Task, folder: str, environ: Mapping[str, str]) -> str:
    """The user's or built-in file that a project's task of the same name hides, if there is one."""
    others = (path for origin, path in _find_files(task.name, folder, environ) if origin != PROJECT)
    return next(others, "") if task.origin == PROJECT else ""


def _find_files(name: str, folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every file of that name, the nearest first; an unreadable one counts, so that no other file replaces it."""
    for origin, place in _list_folders(folder, environ) if ids.is_chosen(name) else ():
        path = os.path.join(place, name + _SUFFIX)
        if os.path.lexists(path):
            yield origin, path


def list_tasks(folder: str, environ: Mapping[str, str]) -> list[ListedTask]:
    """List all tasks by name, each from its first location; an invalid one with the reason."""
    found: dict[str, ListedTask] = {}
    for origin, place in _list_folders(folder, environ):
        for name in _list_names(place):
            if name in found:
                continue
            path = os.path.join(place, name + _SUFFIX)
            try:
                found[name] = ListedTask(name=name, origin=origin, path=path, task=_read_task(name, origin, path))
            except UsageError as error:
                found[name] = ListedTask(name=name, origin=origin, path=path, task=None, problem=str(error))
    return [found[name] for name in sorted(found)]


def create_task(name: str, description: str, folder: str) -> str:
    """Write a template into the project and return its path; an existing task is not touched."""
    if not ids.is_chosen(name):
        raise UsageError(
            f"'{shorten_name(name)}' cannot be a task's name: use up to 64 letters, digits, '.', '_' and '-'"
        )
    import json

    root = find_worktree(folder)
    path = os.path.join(root, PROJECT_FOLDER, name + _SUFFIX)
    paths.refuse_links(root, path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            quoted = json.dumps(" ".join((description or "What this task is for").split()), ensure_ascii=False)
            file.write(_TEMPLATE.replace("DESCRIPTION", quoted))
    except FileExistsError:
        raise UsageError(f"{path} already exists: edit it, or choose another name") from None
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
You work in {workspace}. Describe here what to do, and how to tell that it is done.
"""


def _list_folders(folder: str, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    here, root = os.path.realpath(folder), find_worktree(folder)
    while True:  # outside a repository only the folder itself counts
        yield PROJECT, os.path.join(here, PROJECT_FOLDER)
        if here == root:
            break
        here = os.path.dirname(here)
    yield USER, os.path.join(paths.find_config_folder(environ), "tasks")
    yield SHIPPED, BUILT_IN_FOLDER


def _list_names(place: str) -> list[str]:
    try:
        files = sorted(os.listdir(place))
    except OSError:
        return []
    return [name[: -len(_SUFFIX)] for name in files if name.endswith(_SUFFIX) and ids.is_chosen(name[: -len(_SUFFIX)])]


def _read_task(name: str, origin: str, path: str) -> Task:
    if origin == PROJECT:
        folder = path.removesuffix(os.path.join(os.sep, PROJECT_FOLDER, name + _SUFFIX)) or os.sep
        if not os.path.realpath(path).startswith(os.path.join(find_worktree(folder), "")):
            raise UsageError(f"{path} leads out of the project by a link: put the task itself there")
    return parse_task(name, read_regular_text(path, _FILE_LIMIT), path, TASK_SETTINGS)._replace(origin=origin)
