"""Describes for a person what the files of a project may do once they are trusted. It decides nothing.

A new kind of file that trust covers gets an entry in `_DESCRIBERS`.
"""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

from jackline.app import trust
from jackline.app.config import AGENTS_NAMED_BY_ARGUMENTS, read_toml
from jackline.app.paths import PROJECT_FILE
from jackline.app.policy_files import FILE as POLICY_FILE
from jackline.app.project_settings import read_text
from jackline.app.setting_keys import KEYS_BY_NAME, format_setting, is_looser, parse_setting
from jackline.app.tasks import PROJECT_FOLDER as TASKS_FOLDER
from jackline.app.text_files import read_regular_text
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.policy.rules import Rule

_FILE_LIMIT = 1_000_000
_MAY_RUN = "the agent may run it, or start programs that it names"
_NAMES_PROGRAM = ("Helper", "Command", "Refresh", "Export")  # how the names of settings for a program end
_MOST_PROGRAMS = 10


class TrustedFile(NamedTuple):
    """A file that trust covers, and what it may do once it is trusted."""

    path: str  # relative to the project
    allows: tuple[str, ...] = ()


def review_files(project: str, folder: str) -> list[TrustedFile]:
    """Describe every file that trust covers; a file that cannot be parsed is described by its error.

    `folder` is where the person is: settings for agents between it and the root of the repository are covered too.
    """
    found = []
    for path in trust.list_files(project):
        name = os.path.relpath(path, project)
        describe = next((describe for matches, describe in _DESCRIBERS if matches(name)), _describe_text)
        try:
            allows = tuple(describe(path))
        except UsageError as error:
            allows = (f"cannot be used as it is: {error}",)
        found.append(TrustedFile(path=name, allows=allows))
    readers: dict[str, list[str]] = {}
    for by_agent in trust.list_settings(folder, os.environ).values():
        for agent, paths in by_agent.items():
            for path in paths:
                readers.setdefault(path, []).append(agent)
    for path, agents in readers.items():
        fields = _read_agent_file(path)
        content = _MAY_RUN if fields is None else ", ".join(map(str, fields)) or "nothing yet"
        allows = tuple(f"{agent} takes its settings from it: {content}" for agent in agents)
        programs = list(dict.fromkeys(filter(None, _list_programs(fields))))
        more = (f"starts {len(programs) - _MOST_PROGRAMS} more programs",) if len(programs) > _MOST_PROGRAMS else ()
        starts = (*(f"starts a program: {one}" for one in programs[:_MOST_PROGRAMS]), *more)
        found.append(TrustedFile(path=os.path.relpath(path, project), allows=(*allows, *starts)))
    return found


def _read_agent_file(path: str) -> dict[str, object] | None:
    """The settings of a JSON or TOML file; None for anything else, which may run as a part of the agent."""
    text = read_text(path)
    try:
        fields = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _list_programs(fields: object) -> Iterator[str]:
    """The programs that settings name: hooks, servers, status lines, helpers that print keys."""
    left = [fields]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(reversed(value))
        elif isinstance(value, dict):
            left.extend(reversed(value.values()))
            for name, given in value.items():
                if name == "command" or name.endswith(_NAMES_PROGRAM):
                    args = value.get("args") if name == "command" else None
                    words = [
                        *(given if isinstance(given, list) else [given]),
                        *(args if isinstance(args, list) else []),
                    ]
                    yield " ".join(one for one in words if isinstance(one, str) and one)


def _describe_settings(path: str) -> Iterator[str]:
    """The programs, prices and higher limits of a jackline.toml."""
    for name, value in read_toml(path).items():
        if name == "agents" and isinstance(value, dict):
            for agent, table in value.items():
                yield from _describe_agent(agent, table if isinstance(table, dict) else {})
        elif name == "prices":
            yield "sets the prices that budgets are computed with"
        elif name in {"agent", "fallback", "auto"}:
            if {one.strip() for one in str(value).split(",")} & AGENTS_NAMED_BY_ARGUMENTS:
                yield f"{name} = {value}: an agent that starts any program"
        elif name in KEYS_BY_NAME and KEYS_BY_NAME[name].program:
            yield f"starts a program: {name} = {value}"
        elif name in KEYS_BY_NAME:
            yield from _describe_limit(name, value, path)


def _describe_agent(agent: str, table: Mapping[str, object]) -> Iterator[str]:
    for key, value in table.items():
        shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        if key == "env":
            yield f"agent {agent}: gets the variables {shown}"
        elif key in {"model", "effort"}:
            yield f"agent {agent}: {key} {shown}"
        else:
            yield f"agent {agent}: starts with {key} = {shown}"


def _describe_limit(name: str, value: object, path: str) -> Iterator[str]:
    asked, default = parse_setting(name, value, path), KEYS_BY_NAME[name].default
    if is_looser(name, asked, default):
        yield f"raises {name} to {format_setting(asked)} (default {format_setting(default)})"


def _describe_policy(path: str) -> Iterator[str]:
    """The rules that could loosen another layer, and the programs that they start."""
    from jackline.policy.toml_rules import parse_policy, require_valid

    for rule in require_valid(parse_policy(read_regular_text(path, _FILE_LIMIT), "project"), path):
        if rule.probe:
            yield f"rule {rule.name}: starts the probe {rule.probe}"
        if claims := ", ".join(_list_claims(rule)):
            yield f"rule {rule.name}: {claims}"


def _list_claims(rule: Rule) -> Iterator[str]:
    if rule.decision is Decision.ALLOW:
        yield "lets its calls run without asking"
    if rule.call_class in {CallClass.READ, CallClass.LOCAL}:
        yield f"says that they are harmless ({rule.call_class})"
    if rule.replay in {Replay.IDEMPOTENT, Replay.RELAUNCH}:
        yield f"says that they may be repeated ({rule.replay})"
    if rule.nothing_happened:
        yield "says when a failed call did nothing"


def _describe_task(path: str) -> Iterator[str]:
    from jackline.app.tasks import TASK_SETTINGS
    from jackline.domain.task import parse_task

    task = parse_task(os.path.basename(path), read_regular_text(path, _FILE_LIMIT), path, TASK_SETTINGS)
    if task.proof:
        yield f"the host runs its proof: {task.proof}"
    if {task.agent, *task.fallback} & AGENTS_NAMED_BY_ARGUMENTS:
        yield "chooses an agent that starts any program"
    if task.allow:
        yield f"approves calls in advance: {', '.join(task.allow)}"
    for name, value in task.settings.items():
        yield from _describe_limit(name, value, path)


def _describe_text(_path: str) -> Iterator[str]:
    yield from ()  # agents read it, and the host starts nothing because of it


_DESCRIBERS: tuple[tuple[Callable[[str], bool], Callable[[str], Iterator[str]]], ...] = (
    (lambda name: name == PROJECT_FILE, _describe_settings),
    (lambda name: name == os.path.join(trust.AGENTS_FOLDER, POLICY_FILE), _describe_policy),
    (lambda name: os.path.dirname(name) == TASKS_FOLDER and name.endswith(".md"), _describe_task),
)
