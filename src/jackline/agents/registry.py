"""Which agents there are, by name; each is imported when asked for. Must not launch or probe one.

Three kinds: those in AGENTS, those that the user's own config describes, and those that other packages bring (entry
points `jackline.agents`). A name belongs to the first kind that has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.errors import AgentUnavailable, ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.agents.described import Described
    from jackline.domain.adapter import Adapter

AGENTS: dict[str, str] = {
    "acp": "jackline.agents.acp:ADAPTER",
    "claude": "jackline.agents.claude:ADAPTER",
    "codex": "jackline.agents.codex:ADAPTER",
    "command": "jackline.agents.command:ADAPTER",
    "gemini": "jackline.agents.gemini:ADAPTER",
    "kilo": "jackline.agents.kilo:ADAPTER",
    "ollama": "jackline.agents.ollama:ADAPTER",
    "opencode": "jackline.agents.opencode:ADAPTER",
    "qwen": "jackline.agents.qwen:ADAPTER",
    "scripted": "jackline.agents.scripted:ADAPTER",
}
_NONE: Mapping[str, Described] = {}


def names(described: Mapping[str, Described] = _NONE) -> tuple[str, ...]:
    """Every agent that can be asked for, in order; a broken one too, because `load` says what is wrong with it."""
    from jackline.agents import foreign

    return tuple(sorted({*AGENTS, *foreign.names(), *described}))


def load(name: str, described: Mapping[str, Described] = _NONE) -> Adapter:
    """The adapter of that name, imported now."""
    if name in AGENTS:
        if name in described:
            raise ConfigError(f"[agents.{name}] describes an agent that jackline has built in: choose another name")
        return _imported(AGENTS[name])
    if name in described:
        return _described(described[name])
    from jackline.agents import foreign  # reading what is installed takes longer than most commands

    if name in foreign.names():
        return foreign.load(name)
    raise UsageError(_unknown(name, described))


def broken(described: Mapping[str, Described] = _NONE) -> dict[str, str]:
    """Why an agent cannot be loaded, by its name; the others are not in it."""
    reasons = {}
    for name in names(described):
        try:
            load(name, described)
        except (AgentUnavailable, UsageError) as error:
            reasons[name] = str(error)
    return reasons


def _imported(place: str) -> Adapter:
    from importlib import import_module

    module, _, attribute = place.partition(":")
    adapter: Adapter = getattr(import_module(module), attribute)
    return adapter


def _described(described: Described) -> Adapter:
    from jackline.agents.described import adapter_of

    return adapter_of(described, _imported(AGENTS[described.format]) if described.format in AGENTS else None)


def _unknown(name: str, described: Mapping[str, Described]) -> str:
    from difflib import get_close_matches

    known = names(described)
    near = get_close_matches(name, known, n=3)
    question = f" did you mean {' or '.join(near)}?" if near else ""
    return f"no agent is called '{name}':{question} choose one of: {', '.join(known)}"
