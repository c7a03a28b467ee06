"""How each agent of a new run is to be run: model, effort, arguments. The nearest word counts; nothing is made up."""

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
    """`asked` is what flags and task say; then come the variables, then the user's settings, then the CLI itself."""
    name = declaration.name
    variables = (variable(name, "MODEL"), *declaration.model_variables)
    named = next((environ[one] for one in variables if environ.get(one)), "")
    manner = Manner(
        model=asked.model or named or _text(name, settings, "model"),
        effort=asked.effort or environ.get(variable(name, "EFFORT"), "") or _text(name, settings, "effort"),
        arguments=(*_texts(name, settings, "arguments"), *asked.arguments),
        passes=_texts(name, settings, "env"),
    )
    refuse_as_word(f"the model of {name}", manner.model)
    refuse_as_word(f"the effort of {name}", manner.effort)
    _refuse_unknown_effort(declaration, manner.effort)
    if declaration.is_named_by_arguments and not manner.arguments:
        raise UsageError(f"which program? name it after --: jackline run PROMPT --agent {name} -- PROGRAM ARGUMENT...")
    return manner


def refuse_as_word(what: str, text: str) -> None:
    """UsageError for what an agent's command line could take for a flag: whoever names a model may not add one."""
    if text and (
        text.lstrip().startswith("-") or not text.strip() or any(unicodedata.category(one) == "Cc" for one in text)
    ):
        raise UsageError(f"{what} cannot be {named(text)!r}: it is a word that begins with no '-' and is printable")


def variable(agent: str, what: str) -> str:
    """The variable that sets something for one agent."""
    return f"JACKLINE_{agent.upper().replace('-', '_')}_{what}"


def _refuse_unknown_effort(declaration: Declaration, effort: str) -> None:
    if not effort or effort in declaration.efforts:
        return
    if not declaration.efforts:
        raise UsageError(f"{declaration.name} takes no reasoning effort: leave it out")
    raise UsageError(f"{declaration.name} knows no effort '{effort}': say one of {', '.join(declaration.efforts)}")


def _text(agent: str, settings: Mapping[str, object], name: str) -> str:
    value = settings.get(name, "")
    if not isinstance(value, str):
        raise ConfigError(f"[agents.{agent}] {name} must be a text, not {value!r}")
    return value


def _texts(agent: str, settings: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = settings.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"[agents.{agent}] {name} must be a list of texts, not {value!r}")
    return tuple(value)
