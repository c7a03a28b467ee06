"""Job files, and the request built from flags, a job file and a task: a flag wins over the job, the job over the task.

Job files are TOML or JSON. They are parsed and validated here; nothing is started.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app.keys import KEYS, nearest
from jackline.app.policies import in_job
from jackline.app.tasks import SETTINGS
from jackline.app.texts import text_of
from jackline.domain.events import NOTHING
from jackline.domain.job import JSON, language
from jackline.domain.task import MODES
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.keys import Setting
    from jackline.domain.rule import Rule

_TEXTS = ("task", "prompt", "mode", "agent", "model", "effort", "session", "proof", "workspace", "script")
_LISTS = ("agents", "fallback", "arguments", "allow")
_SWITCHES = ("requires_commit", "requires_clean")
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


NO_JOB = Job()


def load(path: str) -> Job:
    """Read a job file; an error names the file and the field."""
    return parse(text_of(path), path)


def parse(text: str, source: str) -> Job:
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
        variables={name: _format_variable(value) for name, value in fields.get("vars", {}).items()},
        settings=fields.get("settings", {}),
        rules=in_job(text, fields.get("rule", []), source),
        **{**plain, **_split_agents(lists, plain, source), **paths},
    )


def _parse_fields(text: str, source: str) -> dict[str, Any]:
    import json
    import tomllib

    plain = text.lstrip("\ufeff")
    try:
        fields: dict[str, Any] = (
            json.loads(plain) if language(text) == JSON else tomllib.loads(plain.replace("\r\n", "\n"))
        )
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    except RecursionError:
        raise UsageError(f"{source}: it is nested too deeply") from None
    return fields


def _check_field(name: str, value: object, source: str) -> None:
    where = f"{source}: {name}"
    if name not in _KNOWN:
        hint = " put it into the table [settings]:" if name in SETTINGS else nearest(name, _KNOWN)
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
        if name == "settings" and key not in SETTINGS:
            known = any(each.name == key for each in KEYS)
            hint = " a run cannot set it:" if known else nearest(key, SETTINGS)
            raise UsageError(f"{where}.{key} is unknown:{hint} known are {', '.join(SETTINGS)}")


def _split_agents(lists: dict[str, tuple[str, ...]], plain: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Expand `agents`, which is short for an agent and its fallback."""
    if "agents" not in lists:
        return dict(lists)
    if "agent" in plain or "fallback" in lists:
        raise UsageError(f"{source}: use either 'agents', or 'agent' and 'fallback'")
    agents = lists.pop("agents")
    return {**lists, "agent": agents[0] if agents else "", "fallback": agents[1:]}


def _format_variable(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
