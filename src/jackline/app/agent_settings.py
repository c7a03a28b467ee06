"""The options of each agent of a new run: model, effort, arguments. The most specific source wins."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING

from jackline.app.setting_keys import suggest_nearest
from jackline.app.text_files import shorten_name
from jackline.domain import ids
from jackline.domain.spec import AgentOptions
from jackline.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Declaration

TEXTS = ("binary", "model", "effort", "env_file")
LISTS = ("env", "arguments")
DEFINING_KEYS = ("command", "acp")  # a table with one of these defines an agent, and may have more keys


def build_options(
    declaration: Declaration, asked: AgentOptions, environ: Mapping[str, str], settings: Mapping[str, object]
) -> AgentOptions:
    """Flags and task (`asked`) come first, then variables, then the user's settings, then the CLI's own defaults."""
    name = declaration.agent
    variables = (build_variable_name(name, "MODEL"), *declaration.model_variables)
    from_environ = next((environ[one] for one in variables if environ.get(one)), "")
    options = AgentOptions(
        model=asked.model or from_environ or _read_text(name, settings, "model"),
        effort=asked.effort
        or environ.get(build_variable_name(name, "EFFORT"), "")
        or _read_text(name, settings, "effort"),
        arguments=(*_read_texts(name, settings, "arguments"), *asked.arguments),
        passes=_read_texts(name, settings, "env"),
    )
    check_options(declaration, options)
    if declaration.is_named_by_arguments and not options.arguments:
        raise UsageError(f"no program given; write it after --: jackline run PROMPT --agent {name} -- PROGRAM …")
    return options


def check_options(declaration: Declaration, options: AgentOptions) -> None:
    """Raise UsageError for a model or an effort that the agent cannot take."""
    name = declaration.name
    reject_flag_like(f"the model of {name}", options.model)
    reject_flag_like(f"the effort of {name}", options.effort)
    if options.effort and not declaration.efforts:
        raise UsageError(f"{name} has no reasoning effort; remove it")
    if options.effort and options.effort not in declaration.efforts:
        raise UsageError(f"{name} has no effort '{options.effort}'; use one of {', '.join(declaration.efforts)}")


def reject_flag_like(what: str, text: str) -> None:
    """Raise UsageError for a text that an agent's command line could read as a flag."""
    if text and (
        text.lstrip().startswith("-") or not text.strip() or any(unicodedata.category(one) == "Cc" for one in text)
    ):
        raise UsageError(f"{what} cannot be {shorten_name(text)!r}: it must be printable and not start with '-'")


def build_variable_name(agent: str, what: str) -> str:
    """The environment variable of one option of one agent."""
    return f"JACKLINE_{agent.upper().replace('-', '_')}_{what}"


def _read_text(agent: str, settings: Mapping[str, object], name: str) -> str:
    value = settings.get(name, "")
    if not isinstance(value, str):
        raise ConfigError(f"[agents.{agent}] {name} must be a string, not {value!r}")
    return value


def _read_texts(agent: str, settings: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = settings.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"[agents.{agent}] {name} must be a list of strings, not {value!r}")
    return tuple(value)


def check_tables(tables: object, path: str) -> dict[str, dict[str, object]]:
    """Check every agent's table in a config file; returns them by name."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: agents must be tables, such as [agents.claude]")
    checked: dict[str, dict[str, object]] = {}
    for name, table in tables.items():
        if not isinstance(table, dict) or not ids.is_chosen(name):
            raise ConfigError(f"{path}: agents.{name} must be a table, and its name letters, digits, '.', '_' and '-'")
        for key, value in table.items():
            _check_value(f"{path}: agents.{name}.{key}", key, value, table)
        checked[name] = dict(table)
        if "binary" in table:  # a bare name stays, for the PATH; a relative path starts from the config file
            binary = os.path.expanduser(str(table["binary"]))
            checked[name]["binary"] = os.path.join(os.path.dirname(path), binary) if os.sep in binary else binary
        if "env_file" in table:
            checked[name]["env_file"] = os.path.join(os.path.dirname(path), os.path.expanduser(str(table["env_file"])))
    return checked


def _check_value(where: str, key: str, value: object, table: Mapping[str, object]) -> None:
    if key in TEXTS and not (isinstance(value, str) and value.strip()):
        raise ConfigError(f"{where} must be text, not {value!r}")
    if key in LISTS and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(f"{where} must be a list of strings, not {value!r}")
    if key not in (*TEXTS, *LISTS) and not any(one in table for one in DEFINING_KEYS):
        known = (*TEXTS, *LISTS, *DEFINING_KEYS)
        raise ConfigError(f"{where} is unknown:{suggest_nearest(key, known)} known keys are {', '.join(known)}")
