"""One request from what was typed, a job file and a task: a flag counts before the job, the job before the task."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from jackline.domain.records import Manner
from jackline.domain.task import fill
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.job import Job
    from jackline.app.request import Request
    from jackline.domain.task import Task


def variables_of(words: Sequence[str]) -> dict[str, str]:
    """`name=value` pairs as they were typed."""
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--var {word}: write it as NAME=VALUE")
        if name in given:
            raise UsageError(f"--var {name} is given twice")
        given[name] = value
    return given


def compose(typed: Request, job: Job, task: Task | None, variables: Mapping[str, str]) -> Request:
    """What is asked for in the end; settings of the job and the task go along, below the flags."""
    workspace = typed.workspace or job.workspace
    asked = typed._replace(
        prompt=_prompt(typed, job, task, {**job.variables, **variables}, workspace),
        agent=typed.agent or job.agent or (task.agent if task else ""),
        workspace=workspace,
        task=task.name if task else typed.task,
        proof=typed.proof or job.proof or (task.proof if task else ""),
        rules=typed.rules or job.rules,
        manner=_manner(typed, job, task),
        fallback=typed.fallback or job.fallback or (task.fallback if task else ()),
        session=typed.session or job.session,
        mode=typed.mode or job.mode or (task.mode if task else ""),
        allow=tuple(dict.fromkeys((*typed.allow, *job.allow, *(task.allow if task else ())))),
        requires_commit=_wanted(job.requires_commit, task is not None and task.requires_commit),
        requires_clean=_wanted(job.requires_clean, task is not None and task.requires_clean),
        job=job.text,
    )
    layers = ((task.source, task.settings),) if task else ()
    return asked._replace(settings=(*layers, (job.source, job.settings)))


def _prompt(typed: Request, job: Job, task: Task | None, variables: Mapping[str, str], workspace: str) -> str:
    """The task's own words first; what was asked besides follows after a blank line."""
    said = typed.prompt or job.prompt
    if task is None:
        if variables:
            raise UsageError(f"--var {next(iter(variables))} is for a task: name one with --task")
        return said
    known = {"workspace": os.path.realpath(workspace or "."), "task": task.name}
    return "\n\n".join(part for part in (fill(task, variables, known), said) if part.strip())


def _manner(typed: Request, job: Job, task: Task | None) -> Manner:
    """A model that was written down for one agent means nothing to another."""
    model, effort = typed.manner.model, typed.manner.effort
    taken = typed.agent
    for layer in (job, task):
        if layer is None:
            continue
        if not taken or layer.agent in {"", taken}:
            model, effort = model or layer.model, effort or layer.effort
        taken = taken or layer.agent
    return typed.manner._replace(model=model, effort=effort, arguments=(*job.arguments, *typed.manner.arguments))


def _wanted(job: bool | None, task: bool) -> bool:  # noqa: FBT001 - what each of the two says
    return task if job is None else job
