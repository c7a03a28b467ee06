"""Job files, and the request built from flags, a job file and a task: a flag wins over the job, the job over the task.

Job files are TOML or JSON. They are parsed and validated here; nothing is started.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app.config import AGENTS_NAMED_BY_ARGUMENTS, format_held_limit
from jackline.app.policy_files import parse_job_policy
from jackline.app.setting_keys import KEYS, KEYS_BY_NAME, is_looser, parse_setting, suggest_nearest
from jackline.app.tasks import TASK_SETTINGS
from jackline.app.text_files import read_text
from jackline.app.trust import find_agents_parent, find_project, is_file_trusted
from jackline.domain.agent_ref import split_agent
from jackline.domain.events import NOTHING
from jackline.domain.spec import AgentOptions
from jackline.domain.task import JSON, MODES, PROJECT, detect_job_format, fill_prompt
from jackline.errors import Refused, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jackline.app.config import Config
    from jackline.app.request import Request
    from jackline.app.setting_keys import Setting
    from jackline.domain.task import Task
    from jackline.policy.rules import Rule


_TEXTS = (
    "task", "prompt", "mode", "agent", "model", "effort", "session", "proof", "workspace", "script", "review_mode",
    "done_signal", "setup", "pr", "pr_base", "until",
)  # fmt: skip
_LISTS = ("agents", "fallback", "arguments", "allow", "review", "copy")
_SWITCHES = ("requires_commit", "requires_clean", "plan", "proof_must_fail_first", "commit")
_TABLES = ("vars", "settings")
_KNOWN = (*_TEXTS, *_LISTS, *_SWITCHES, *_TABLES, "rule")
_PATHS = ("workspace", "script")


class Job(NamedTuple):
    """The content of a job file; empty fields fall back to its task and the settings."""

    text: str = ""
    source: str = ""
    task: str = ""
    prompt: str = ""
    mode: str = ""
    agent: str = ""
    model: str = ""
    effort: str = ""
    session: str = ""
    proof: str = ""
    workspace: str = ""
    script: str = ""
    fallback: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    requires_commit: bool | None = None
    requires_clean: bool | None = None
    variables: Mapping[str, str] = NOTHING
    settings: Mapping[str, Setting] = NOTHING
    rules: tuple[Rule, ...] = ()
    allow: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    review_mode: str = ""
    done_signal: str = ""
    plan: bool | None = None
    proof_must_fail_first: bool | None = None
    commit: bool | None = None
    setup: str = ""
    copy: tuple[str, ...] = ()
    pr: str = ""
    pr_base: str = ""
    until: str = ""


NO_JOB = Job()


def load_job(path: str) -> Job:
    """Read a job file; an error names the file and the field."""
    return parse_job(read_text(path), path)


def parse_job(text: str, source: str) -> Job:
    """Parse a job; its paths are relative to the file."""
    fields = _parse_fields(text, source)
    for name, value in fields.items():
        _check_field(name, value, source)
    folder = os.path.dirname(os.path.abspath(source))
    plain = {name: fields[name] for name in (*_TEXTS, *_SWITCHES) if name in fields}
    lists = {name: tuple(fields[name]) for name in _LISTS if name in fields}
    paths = {name: os.path.join(folder, os.path.expanduser(fields[name])) for name in _PATHS if fields.get(name)}
    return Job(
        text=text,
        source=source,
        variables={
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in fields.get("vars", {}).items()
        },
        settings=fields.get("settings", {}),
        rules=parse_job_policy(text, fields.get("rule", []), source),
        **{**plain, **_split_agents(lists, plain, source), **paths},
    )


def _parse_fields(text: str, source: str) -> dict[str, Any]:
    import json
    import tomllib

    plain = text.lstrip("\ufeff")
    try:
        fields: dict[str, Any] = (
            json.loads(plain) if detect_job_format(text) == JSON else tomllib.loads(plain.replace("\r\n", "\n"))
        )
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    except RecursionError:
        raise UsageError(f"{source}: it is nested too deeply") from None
    return fields


def _check_field(name: str, value: object, source: str) -> None:
    where = f"{source}: {name}"
    if name not in _KNOWN:
        hint = " put it into the table [settings]:" if name in TASK_SETTINGS else suggest_nearest(name, _KNOWN)
        raise UsageError(f"{source}: unknown field '{name}':{hint} known are {', '.join(_KNOWN)}")
    if name in _TEXTS and not (isinstance(value, str) and value.strip()):
        raise UsageError(f"{where} must be non-empty text")
    if name in _LISTS and not (isinstance(value, list) and all(isinstance(one, str) and one for one in value)):
        raise UsageError(f"{where} must be a list of strings")
    if name in _SWITCHES and not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false")
    if name == "mode" and value not in MODES:
        raise UsageError(f"{where} must be {' or '.join(MODES)}, not '{value}'")
    if name in _TABLES:
        _check_table(name, value, where)


def _check_table(name: str, value: object, where: str) -> None:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be a table")
    for key, one in value.items():
        if not isinstance(one, str | int | float):
            raise UsageError(f"{where}.{key} must be text or a number")
        if name == "settings" and key not in TASK_SETTINGS:
            known = any(each.name == key for each in KEYS)
            hint = " a run cannot set it:" if known else suggest_nearest(key, TASK_SETTINGS)
            raise UsageError(f"{where}.{key} is unknown:{hint} known are {', '.join(TASK_SETTINGS)}")


def _split_agents(lists: dict[str, tuple[str, ...]], plain: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Expand `agents`, which is short for an agent and its fallback."""
    if "agents" not in lists:
        return dict(lists)
    if "agent" in plain or "fallback" in lists:
        raise UsageError(f"{source}: use either 'agents', or 'agent' and 'fallback'")
    agents = lists.pop("agents")
    return {**lists, "agent": agents[0] if agents else "", "fallback": agents[1:]}


def parse_variables(words: Sequence[str]) -> dict[str, str]:
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


def compose_request(typed: Request, job: Job, task: Task | None, variables: Mapping[str, str]) -> Request:
    """Combine them; the settings of the job and the task rank below the flags."""
    workspace = typed.workspace or job.workspace
    request = typed._replace(
        prompt=_build_prompt(typed, job, task, {**job.variables, **variables}, workspace),
        agent=typed.agent or job.agent or (task.agent if task else ""),
        workspace=workspace,
        task=task.name if task else typed.task,
        proof=typed.proof or job.proof or (task.proof if task else ""),
        rules=typed.rules or job.rules,
        agent_options=_combine_agent_options(typed, job, task),
        fallback=typed.fallback or job.fallback or (task.fallback if task else ()),
        session=typed.session or job.session,
        mode=typed.mode or job.mode or (task.mode if task else ""),
        allow=tuple(dict.fromkeys((*typed.allow, *job.allow, *(task.allow if task else ())))),
        requires_commit=_choose_switch(job.requires_commit, task is not None and task.requires_commit),
        requires_clean=_choose_switch(job.requires_clean, task is not None and task.requires_clean),
        job=job.text,
        setup=typed.setup or job.setup or (task.setup if task else ""),
        copy=typed.copy or job.copy,
        pr=typed.pr or job.pr or (task.pr if task else ""),
        pr_base=typed.pr_base or job.pr_base or (task.pr_base if task else ""),
        until=typed.until or job.until or (task.until if task else ""),
        review=typed.review or job.review or (task.review if task else ()),
        review_mode=typed.review_mode or job.review_mode or (task.review_mode if task else ""),
        done_signal=typed.done_signal or job.done_signal or (task.done_signal if task else ""),
        plan=typed.plan or _choose_switch(job.plan, task is not None and task.plan),
        proof_must_fail_first=typed.proof_must_fail_first
        or _choose_switch(job.proof_must_fail_first, task is not None and task.proof_must_fail_first),
        commit_work=typed.commit_work or _choose_switch(job.commit, task is not None and task.commit),
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
    return "\n\n".join(part for part in (fill_prompt(task, variables, known), more) if part.strip())


def _combine_agent_options(typed: Request, job: Job, task: Task | None) -> AgentOptions:
    """A model that was chosen for one agent does not apply to another."""
    given, agent = typed.agent_options, typed.agent
    model, effort = given.model, given.effort
    for layer in (job, task):
        if layer is None:
            continue
        if not agent or not layer.agent or split_agent(layer.agent).name == split_agent(agent).name:
            model, effort = model or layer.model, effort or layer.effort
        agent = agent or layer.agent
    return given._replace(model=model, effort=effort, arguments=(*job.arguments, *given.arguments))


def _choose_switch(job: bool | None, task: bool) -> bool:  # noqa: FBT001 - one value of each
    return task if job is None else job


class RestrictedTask(NamedTuple):
    """A restricted task, and notes about the removed settings."""

    task: Task
    notes: tuple[str, ...] = ()


def restrict_task(task: Task, typed: Request, job: Job, config: Config) -> RestrictedTask:
    """Restrict a task; raise Refused if it runs a program that only the project asked for."""
    if task.origin != PROJECT:
        return RestrictedTask(task)
    for name in (task.agent, *task.fallback, *task.review):
        if split_agent(name).account:
            raise Refused(f"{task.source}: a project may not choose an account: write {split_agent(name).name} alone")
    if is_file_trusted(config.get_text("home"), config.get_text("database"), task.source):
        kept, notes = _hold_settings(task, config, [name for name in task.settings if KEYS_BY_NAME[name].only_tightens])
        return RestrictedTask(task._replace(settings=kept), notes)
    if task.proof and not (typed.proof or job.proof):
        raise Refused(f"{task.source} is not trusted, but its proof runs a command: {_describe_fix(task)}")
    starts = {"its setup runs a command": bool(task.setup) and not (typed.setup or job.setup)}
    starts["lets the host commit"] = task.commit and not (typed.commit_work or job.commit)
    for what in (what for what, is_so in starts.items() if is_so):
        raise Refused(f"{task.source} is not trusted, but {what}: {_describe_fix(task)}")
    agent = () if typed.agent or job.agent else (task.agent,)
    fallback = () if typed.fallback or job.fallback else task.fallback
    review = () if typed.review or job.review else task.review
    for name in (*agent, *fallback, *review):
        if name in AGENTS_NAMED_BY_ARGUMENTS:
            raise Refused(f"{task.source} is not trusted, but '{name}' can run any program: {_describe_fix(task)}")
    kept, notes = _hold_settings(task, config, task.settings)
    for name, value in (("allow", ", ".join(task.allow)), ("pr", task.pr)):  # approvals, which only a person gives
        notes += (f"{task.source}: ignoring {name} = {value}: {_describe_fix(task)}",) if value else ()
    return RestrictedTask(task._replace(settings=kept, allow=(), pr="", pr_base="", until=""), notes)


def _hold_settings(task: Task, config: Config, names: Iterable[str]) -> tuple[dict[str, Setting], tuple[str, ...]]:
    """The settings without those of `names` that are looser than the others, and notes about these."""
    kept, notes = dict(task.settings), []
    for name in names:
        value, holds = task.settings[name], config.values[name]
        if is_looser(name, parse_setting(name, value, task.source), holds):
            del kept[name]
            if not config.sources[name].startswith("--"):  # a flag overrides the task anyway
                notes.append(format_held_limit(task.source, name, value, holds))
    return kept, tuple(notes)


def _describe_fix(task: Task) -> str:
    folder = find_agents_parent(task.source)
    if find_project(folder) != folder:
        return f"`jackline trust` does not cover it there; move it to .agents/tasks of {find_project(folder)}"
    return "review it, then run `jackline trust`"
