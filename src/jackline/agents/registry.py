"""Which agents there are, by name; each is imported when asked for. Must not launch or probe one."""

from __future__ import annotations

from jackline.domain.adapter import Adapter
from jackline.errors import UsageError

AGENTS: dict[str, str] = {
    "scripted": "jackline.agents.scripted:ADAPTER",
}


def names() -> tuple[str, ...]:
    """Every agent that can be asked for, in order."""
    return tuple(sorted(AGENTS))


def load(name: str) -> Adapter:
    """The adapter of that name, imported now."""
    if name not in AGENTS:
        raise UsageError(_unknown(name))
    from importlib import import_module

    module, _, attribute = AGENTS[name].partition(":")
    adapter: Adapter = getattr(import_module(module), attribute)
    return adapter


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, AGENTS, n=3)
    question = f" did you mean {' or '.join(near)}?" if near else ""
    return f"no agent is called '{name}':{question} choose one of: {', '.join(names())}"
