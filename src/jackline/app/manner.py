"""The options of each agent of a new run: model, effort, arguments. The most specific source wins."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from jackline.app.texts import named
from jackline.domain.records import Manner
from jackline.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Declaration


def manner_of(
    declaration: Declaration, asked: Manner, environ: Mapping[str, str], settings: Mapping[str, object]
) -> Manner:
    """Flags and task (`asked`) come first, then variables, then the user's settings, then the CLI's own defaults."""
    name = declaration.name
    variables = (variable(name, "MODEL"), *declaration.model_variables)
    from_environ = next((environ[one] for one in variables if environ.get(one)), "")
    options = Manner(
        model=asked.model or from_environ or _read_text(name, settings, "model"),
        effort=asked.effort or environ.get(variable(name, "EFFORT"), "") or _read_text(name, settings, "effort"),
        arguments=(*_read_texts(name, settings, "arguments"), *asked.arguments),
        passes=_read_texts(name, settings, "env"),
    )
    refuse_as_word(f"the model of {name}", options.model)
    refuse_as_word(f"the effort of {name}", options.effort)
    if options.effort and not declaration.efforts:
        raise UsageError(f"{name} has no reasoning effort; remove it")
    if options.effort and options.effort not in declaration.efforts:
        raise UsageError(f"{name} has no effort '{options.effort}'; use one of {', '.join(declaration.efforts)}")
    if declaration.is_named_by_arguments and not options.arguments:
        raise UsageError(f"no program given; write it after --: jackline run PROMPT --agent {name} -- PROGRAM …")
    return options


def refuse_as_word(what: str, text: str) -> None:
    """Raise UsageError for a text that an agent's command line could read as a flag."""
    if text and (
        text.lstrip().startswith("-") or not text.strip() or any(unicodedata.category(one) == "Cc" for one in text)
    ):
        raise UsageError(f"{what} cannot be {named(text)!r}: it must be printable and not start with '-'")


def variable(agent: str, what: str) -> str:
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
