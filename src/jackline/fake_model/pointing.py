"""Points each real CLI at the fake model: environment and settings files, dummy keys only. Starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KEY = "fake-key"  # the fake model ignores it, and a real one would reject it


class PointedCli(NamedTuple):
    """The environment and files of the CLI; `files` have absolute paths below the folder."""

    env: Mapping[str, str]
    files: Mapping[str, bytes]


def point(agent: str, address: str, folder: str) -> PointedCli:
    """Point the CLI `agent` at the model at `address`; `folder` is its HOME, so that it never sees the user's."""
    if agent not in _POINTING:
        raise UsageError(f"the fake model does not know the agent '{agent}': it knows {', '.join(sorted(_POINTING))}")
    pointed = _POINTING[agent](address, folder)
    return pointed._replace(env={"HOME": folder, **pointed.env})


def _claude(address: str, folder: str) -> PointedCli:  # noqa: ARG001 - the variables are enough, no file is needed
    env = {
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return PointedCli(env, {})


def _codex(address: str, folder: str) -> PointedCli:
    """A custom provider: the built-in one takes no address from the environment, and tries websockets first."""
    home = f"{folder}/.codex"
    config = f"""\
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false

[model_providers.fake]
name = "Fake"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
supports_websockets = false
request_max_retries = 1
stream_max_retries = 1

[analytics]
enabled = false

[features]
plugins = false
unbounded_connection_retries = false
"""
    env = {"CODEX_HOME": home, "OPENAI_API_KEY": _KEY}
    return PointedCli(env, {f"{home}/config.toml": config.encode()})


def _opencode(address: str, folder: str, name: str = "opencode", plugin: str = "@opencode-ai/plugin") -> PointedCli:
    """For opencode and its fork, XDG folders override HOME, so they are set too."""
    import json
    import os.path

    folders = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
               "XDG_CACHE_HOME": ".cache"}  # fmt: skip
    model = {"name": "Fake", "tool_call": True, "limit": {"context": 10_000_000, "output": 32_000},
             "cost": {"input": 1, "output": 2}}  # fmt: skip
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "models": {"fake-model": model},
                "options": {"baseURL": f"{address}/v1", "apiKey": _KEY}}  # fmt: skip
    config = {"model": "fake/fake-model", "small_model": "fake/fake-model", "enabled_providers": ["fake"],
              "provider": {"fake": provider}}  # fmt: skip
    wants = {"dependencies": {plugin: "*"}}
    files = {
        f"{name}.json": config,
        # Without these it downloads the package at every start, in the background.
        "package.json": wants,
        "package-lock.json": {"packages": {"": wants}},
        "node_modules/.package-lock.json": {},
    }
    env = {variable: os.path.join(folder, path) for variable, path in folders.items()}
    config_folder = os.path.join(folder, ".config", name)
    return PointedCli(
        env, {os.path.join(config_folder, file): json.dumps(fields).encode() for file, fields in files.items()}
    )


def _ollama(address: str, folder: str) -> PointedCli:  # noqa: ARG001 - the variables are enough, no file is needed
    return PointedCli({"OLLAMA_HOST": address, "OLLAMA_MODEL": "fake-model"}, {})


def _gemini(address: str, folder: str) -> PointedCli:
    """The settings name the kind of key: with an address in the environment it would guess an unknown kind."""
    import json

    general = {"enableAutoUpdate": False, "maxAttempts": 2, "retryFetchErrors": False}
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": general,
                "privacy": {"usageStatisticsEnabled": False},
                "model": {"disableLoopDetection": True}}  # fmt: skip  # padding looks like a loop
    # Without a model it first asks another model which one to use.
    env = {"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": address, "GEMINI_MODEL": "fake-model"}
    return PointedCli(env, {f"{folder}/.gemini/settings.json": json.dumps(settings).encode()})


def _qwen(address: str, folder: str) -> PointedCli:
    import json

    # It guesses a small window for a model that it does not know.
    model = {"generationConfig": {"contextWindowSize": 10_000_000}}
    settings = {"security": {"auth": {"selectedType": "openai"}}, "model": model}
    env = {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_MODEL": "fake-model"}
    return PointedCli(env, {f"{folder}/.qwen/settings.json": json.dumps(settings).encode()})


_POINTING: dict[str, Callable[[str, str], PointedCli]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "kilo": lambda address, folder: _opencode(address, folder, "kilo", "@kilocode/plugin"),
    "ollama": _ollama,
    "opencode": _opencode,
    "qwen": _qwen,
}
