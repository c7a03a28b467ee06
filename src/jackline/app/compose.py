"""Builds one request from flags, a job file and a task: a flag wins over the job, the job over the task."""

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
    """Parse `name=value` words."""
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
    """Combine them; the settings of the job and the task rank below the flags."""
    workspace = typed.workspace or job.workspace
    request = typed._replace(
        prompt=_build_prompt(typed, job, task, {**job.variables, **variables}, workspace),
        agent=typed.agent or job.agent or (task.agent if task else ""),
        workspace=workspace,
        task=task.name if task else typed.task,
        proof=typed.proof or job.proof or (task.proof if task else ""),
        rules=typed.rules or job.rules,
        manner=_combine_manner(typed, job, task),
        fallback=typed.fallback or job.fallback or (task.fallback if task else ()),
        session=typed.session or job.session,
        mode=typed.mode or job.mode or (task.mode if task else ""),
        allow=tuple(dict.fromkeys((*typed.allow, *job.allow, *(task.allow if task else ())))),
        requires_commit=_choose_switch(job.requires_commit, task is not None and task.requires_commit),
        requires_clean=_choose_switch(job.requires_clean, task is not None and task.requires_clean),
        job=job.text,
    )
    layers = ((task.source, task.settings),) if task else ()
    return request._replace(settings=(*layers, (job.source, job.settings)))


def _build_prompt(typed: Request, job: Job, task: Task | None, variables: Mapping[str, str], workspace: str) -> str:
    """The task's prompt first; a prompt of the flags or the job follows after a blank line."""
    more = typed.prompt or job.prompt
    if task is None:
        if variables:
            raise UsageError(f"--var {next(iter(variables))} is for a task: name one with --task")
        return more
    known = {"workspace": os.path.realpath(workspace or "."), "task": task.name}
    return "\n\n".join(part for part in (fill(task, variables, known), more) if part.strip())


def _combine_manner(typed: Request, job: Job, task: Task | None) -> Manner:
    """A model that was chosen for one agent does not apply to another."""
    model, effort = typed.manner.model, typed.manner.effort
    agent = typed.agent
    for layer in (job, task):
        if layer is None:
            continue
        if not agent or layer.agent in {"", agent}:
            model, effort = model or layer.model, effort or layer.effort
        agent = agent or layer.agent
    return typed.manner._replace(model=model, effort=effort, arguments=(*job.arguments, *typed.manner.arguments))


def _choose_switch(job: bool | None, task: bool) -> bool:  # noqa: FBT001 - one value of each
    return task if job is None else job
