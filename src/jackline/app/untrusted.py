"""Restricts tasks of untrusted projects: they must not run a program, raise a limit or allow effects.

Flags and job files that the user names are not restricted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import trust
from jackline.app.config import NAMED_BY_WORDS, held
from jackline.app.keys import loosens, typed
from jackline.domain.task import PROJECT
from jackline.errors import Refused
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.config import Config
    from jackline.app.job import Job
    from jackline.app.request import Request
    from jackline.domain.task import Task


class Restrained(NamedTuple):
    """A restricted task, and notes about the removed settings."""

    task: Task
    notes: tuple[str, ...] = ()


def restrained(task: Task, typed_words: Request, job: Job, config: Config) -> Restrained:
    """Restrict a task; raise Refused if it runs a program that only the project asked for."""
    if task.origin != PROJECT or trust.covers(config.text("home"), task.source):
        return Restrained(task)
    if task.proof and not (typed_words.proof or job.proof):
        raise Refused(f"{task.source} is not trusted, but its proof runs a command: {_describe_fix(task)}")
    agent = () if typed_words.agent or job.agent else (task.agent,)
    fallback = () if typed_words.fallback or job.fallback else task.fallback
    for name in (*agent, *fallback):
        if name in NAMED_BY_WORDS:
            raise Refused(f"{task.source} is not trusted, but '{name}' can run any program: {_describe_fix(task)}")
    kept, notes = {}, []
    for name, value in task.settings.items():
        holds = config.values[name]
        if loosens(name, typed(name, value, task.source), holds):
            if not config.sources[name].startswith("--"):  # a flag overrides the task anyway
                notes.append(held(task.source, name, value, holds))
        else:
            kept[name] = value
    if task.allow:
        notes.append(f"{task.source}: ignoring allow = {', '.join(task.allow)}: {_describe_fix(task)}")
    return Restrained(task._replace(settings=kept, allow=()), tuple(notes))


def _describe_fix(task: Task) -> str:
    folder = trust.folder_of(task.source)
    if trust.project_of(folder) != folder:
        return f"`jackline trust` does not cover it there; move it to .agents/tasks of {trust.project_of(folder)}"
    return "review it, then run `jackline trust`"
