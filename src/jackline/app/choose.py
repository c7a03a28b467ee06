"""Which agents a new run may use, in which order: the ones that were named, or for `auto` the ones that are there.

Only looks: no prompt is sent to find out whether an agent answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.errors import AgentUnavailable, UsageError

if TYPE_CHECKING:
    from jackline.app.home import Home

AUTO = "auto"


def choose(home: Home, agent: str, fallback: tuple[str, ...]) -> tuple[str, ...]:
    """The agent and whoever takes over from it, each once."""
    if not agent:
        raise UsageError(f"which agent? say --agent NAME ({', '.join(agents.names(home.config))}, or {AUTO})")
    wanted = _there(home) if agent == AUTO else (agent,)
    chosen = tuple(dict.fromkeys((*wanted, *fallback)))
    for name in chosen:
        agents.load(home.config, name)
    return chosen


def listed(text: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _there(home: Home) -> tuple[str, ...]:
    """The agents of the ranking that can be used here, those that are resting last."""
    ranking = listed(home.config.text("auto"))
    usable = [
        name for name in ranking if not agents.locate(home.config, agents.load(home.config, name).declaration).why
    ]
    if not usable:
        raise AgentUnavailable(AUTO, why=f"none of {', '.join(ranking)} is ready: `jackline agents` says why")
    resting = agents.resting(home)
    return tuple(sorted(usable, key=lambda name: name in resting))
