"""Chooses the agents of a new run, in order: the named ones, or for `auto` the usable ones. Sends no prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from jackline.app.home import Home

AUTO = "auto"


def choose(home: Home, agent: str, fallback: tuple[str, ...]) -> tuple[str, ...]:
    """The agent and its fallbacks, without duplicates."""
    if not agent:
        raise UsageError(f"no agent given; use --agent NAME ({', '.join(agents.names(home.config))}, or {AUTO})")
    wanted = _rank_usable(home) if agent == AUTO else (agent,)
    chosen = tuple(dict.fromkeys((*wanted, *fallback)))
    for name in chosen:
        agents.load(home.config, name)
    return chosen


def listed(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _rank_usable(home: Home) -> tuple[str, ...]:
    """The usable agents of the configured ranking; paused ones come last."""
    ranking = listed(home.config.text("auto"))
    ready = [name for name in ranking if not agents.locate(home.config, agents.load(home.config, name).declaration).why]
    if not ready:
        raise AgentUnavailable(AUTO, why=f"none of {', '.join(ranking)} is ready; `jackline agents` shows why")
    paused = agents.resting(home)
    return tuple(sorted(ready, key=lambda name: name in paused))
