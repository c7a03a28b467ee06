"""What a task of a project that nobody trusts may not do: run a program, raise a limit, agree to effects.

What a person says by a flag or by a job file that they name is not the project's word, and is not judged here.
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
    """A task with what is left of its settings, and what to tell about the rest."""

    task: Task
    notes: tuple[str, ...] = ()


def restrained(task: Task, typed_words: Request, job: Job, config: Config) -> Restrained:
    """The task as far as it may go; Refused if it wants a program that nobody but the project asked for."""
    if task.origin != PROJECT or trust.covers(config.text("home"), task.source):
        return Restrained(task)
    if task.proof and not (typed_words.proof or job.proof):
        raise Refused(f"{task.source}: proof is a command of this project's own: {_cure(task)}")
    agent = () if typed_words.agent or job.agent else (task.agent,)
    fallback = () if typed_words.fallback or job.fallback else task.fallback
    for name in (*agent, *fallback):
        if name in NAMED_BY_WORDS:
            raise Refused(f"{task.source}: '{name}' starts any program: {_cure(task)}")
    restraint = _tightened(task, config)
    return Restrained(restraint.task._replace(allow=()), (*restraint.notes, *_not_agreed(task)))


def _tightened(task: Task, config: Config) -> Restrained:
    kept, notes = {}, []
    for name, value in task.settings.items():
        holds = config.values[name]
        if loosens(name, typed(name, value, task.source), holds):
            if not config.sources[name].startswith("--"):  # a flag wins over a task anyhow
                notes.append(held(task.source, name, value, holds))
        else:
            kept[name] = value
    return Restrained(task._replace(settings=kept), tuple(notes))


def _not_agreed(task: Task) -> tuple[str, ...]:
    if not task.allow:
        return ()
    return (f"{task.source}: allow is left out, a person must agree to {', '.join(task.allow)}: {_cure(task)}",)


def _cure(task: Task) -> str:
    folder = trust.folder_of(task.source)
    if trust.project_of(folder) != folder:
        return f"`jackline trust` does not cover it there; move it to .agents/tasks of {trust.project_of(folder)}"
    return "read it, then `jackline trust`"
