"""The agents by name, each imported on use. Must not launch or probe one.

There are three kinds: the built-in ones in AGENTS, those that the user's own config defines (TOML), and those of other
packages (entry points `jackline.agents`). The first kind that has a name wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.agent_ref import MARK, parse_agent
from jackline.errors import AgentUnavailable, ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.agents.toml_agents import TomlAgent
    from jackline.domain.adapter import Adapter

AGENTS: dict[str, str] = {
    "acp": "jackline.agents.acp:ADAPTER",
    "claude": "jackline.agents.claude.claude_adapter:ADAPTER",
    "codex": "jackline.agents.codex:ADAPTER",
    "command": "jackline.agents.command:ADAPTER",
    "gemini": "jackline.agents.gemini:ADAPTER",
    "kilo": "jackline.agents.kilo:ADAPTER",
    "ollama": "jackline.agents.ollama:ADAPTER",
    "opencode": "jackline.agents.opencode:ADAPTER",
    "qwen": "jackline.agents.qwen:ADAPTER",
    "scripted": "jackline.agents.scripted.scripted_adapter:ADAPTER",
}
_NONE: Mapping[str, TomlAgent] = {}


def list_agents(toml_agents: Mapping[str, TomlAgent] = _NONE) -> tuple[str, ...]:
    """List every agent, sorted; a broken one too, because `load_adapter` reports its error."""
    from jackline.agents import plugins

    return tuple(sorted({*AGENTS, *plugins.list_names(), *toml_agents}))


class AccountAdapter:
    """The adapter of one account: the agent's own in everything but the name that it is stored by."""

    def __init__(self, adapter: Adapter, reference: str) -> None:
        self._adapter = adapter
        self.declaration = adapter.declaration._replace(name=reference)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the adapter has: launch, parse, hooks, address
        return getattr(self._adapter, name)


def load_adapter(reference: str, toml_agents: Mapping[str, TomlAgent] = _NONE) -> Adapter:
    """Load the adapter of an agent, or of one of its accounts."""
    if MARK not in reference:
        return _load_agent(reference, toml_agents)
    name, _ = parse_agent(reference)
    adapter = _load_agent(name, toml_agents)
    if not adapter.declaration.account_variables:
        raise UsageError(f"{name} does not log in, so it has no accounts: use --agent {name}")
    return AccountAdapter(adapter, reference)


def _load_agent(name: str, toml_agents: Mapping[str, TomlAgent]) -> Adapter:
    """Import the adapter of that name."""
    if name in AGENTS:
        if name in toml_agents:
            raise ConfigError(f"[agents.{name}] defines an agent that is built in; choose another name")
        return _import_adapter(AGENTS[name])
    if name in toml_agents:
        from jackline.agents.toml_agents import build_adapter

        agent = toml_agents[name]
        return build_adapter(agent, _import_adapter(AGENTS[agent.format]) if agent.format in AGENTS else None)
    from jackline.agents import plugins  # reading the installed packages takes longer than most commands

    if name in plugins.list_names():
        return plugins.load_plugin(name)
    from difflib import get_close_matches

    known = list_agents(toml_agents)
    near = get_close_matches(name, known, n=3)
    question = f" did you mean {' or '.join(near)}?" if near else ""
    raise UsageError(f"there is no agent '{name}':{question} choose one of: {', '.join(known)}")


def find_broken(toml_agents: Mapping[str, TomlAgent] = _NONE) -> dict[str, str]:
    """The errors of agents that cannot be loaded, by name."""
    reasons = {}
    for name in list_agents(toml_agents):
        try:
            load_adapter(name, toml_agents)
        except (AgentUnavailable, UsageError) as error:
            reasons[name] = str(error)
    return reasons


def _import_adapter(path: str) -> Adapter:
    from importlib import import_module

    module, _, attribute = path.partition(":")
    adapter: Adapter = getattr(import_module(module), attribute)
    return adapter
