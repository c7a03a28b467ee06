"""Settings and where each came from: defaults, then the user's file, the project's file, the environment, flags.

A project's file is written by whoever writes the project, an agent included: it may set how runs are made here, never
where the home is or which database is used; and which program is started only once a person has said `jackline trust`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from jackline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Setting = str | int | float

USER_FILE = "config.toml"
PROJECT_FILE = "jackline.toml"


class Key(NamedTuple):
    """One setting: its type, default, and whether a project may set it."""

    name: str
    default: Setting
    help: str
    project: bool = True
    least: float = 0


KEYS = (
    Key("home", "", "the folder of this instance", project=False),
    Key(
        "database",
        "",
        "a postgresql:// address, or the whole path of a file; empty: SQLite in the home",
        project=False,
    ),
    Key("agent", "", "the agent to use; auto: the first of the ranking that is ready"),
    Key("fallback", "", "agents that take over when it cannot go on, with commas between"),
    Key("auto", "claude,codex,gemini,qwen,opencode,kilo,ollama", "the ranking for --agent auto"),
    Key("timeout_seconds", 900.0, "how long one turn may take", least=0.1),
    Key("idle_seconds", 600.0, "how long an agent may print nothing; 0: any time"),
    Key("grace_seconds", 5.0, "time between SIGTERM and SIGKILL"),
    Key("lease_seconds", 30.0, "how long a silent supervisor keeps its run", project=False, least=1),
    Key("retries", 2, "how often a transient failure is tried again"),
    Key("retry_seconds", 5.0, "the wait before the first retry; it doubles"),
    Key("max_usd", 20.0, "budget of a run in USD; 0: no limit"),
    Key("max_tokens", 0, "budget of a run in tokens; 0: no limit"),
    Key("max_calls", 10_000, "budget of a run in tool calls; 0: no limit"),
    Key("max_steps", 500, "budget of a run in steps; 0: no limit"),
    Key("max_seconds", 28_800.0, "budget of a run in seconds of work; 0: no limit"),
    Key("max_iterations", 20, "budget of a run in iterations; 0: no limit"),
)
_KEYS = {key.name: key for key in KEYS}
_MOST = 10**12  # more fits no database's integer once it is milliseconds or millionths


class Config(NamedTuple):
    """Every setting with its source."""

    values: Mapping[str, Setting]
    sources: Mapping[str, str]
    binaries: Mapping[str, str]
    agents: Mapping[str, Mapping[str, object]] = {}

    def text(self, name: str) -> str:
        """A setting as text."""
        return str(self.values[name])

    def whole(self, name: str) -> int:
        """A setting as a whole number."""
        return int(self.values[name])

    def number(self, name: str) -> float:
        """A setting as a number."""
        return float(self.values[name])


class _Layers:
    """What has been read so far."""

    def __init__(self) -> None:
        self.values: dict[str, Setting] = {key.name: key.default for key in KEYS}
        self.sources = dict.fromkeys(self.values, "default")
        self.agents: dict[str, dict[str, object]] = {}

    def put(self, name: str, value: object, where: str) -> None:
        self.values[name] = _typed(name, value, where)
        self.sources[name] = where


def load(
    environ: Mapping[str, str],
    folder: str,
    flags: Mapping[str, Setting | None] | None = None,
    *,
    project: bool = True,
) -> Config:
    """Read every layer, the project's only if asked to; the later wins. A value that is wrong names its place."""
    layers = _Layers()
    said = {name: value for name, value in (flags or {}).items() if value is not None}
    _take_file(user_file(environ), layers)
    home = _home(environ, said, layers)
    if project:
        _take_project(project_file(folder), layers, home)
    for name in _KEYS:
        variable = f"JACKLINE_{name.upper()}"
        if environ.get(variable):
            layers.put(name, environ[variable], variable)
    for name, value in said.items():
        layers.put(name, value, f"--{name.replace('_', '-')}")
    layers.values["home"] = home
    return Config(layers.values, layers.sources, _binaries(environ, layers), layers.agents)


def beneath_flags(config: Config, layers: Iterable[tuple[str, Mapping[str, Setting]]]) -> Config:
    """With the settings of a task and a job file: they win over everything but flags, the later over the earlier."""
    values, sources = dict(config.values), dict(config.sources)
    for where, named in layers:
        for name in (one for one in named if not config.sources[one].startswith("--")):
            values[name], sources[name] = _typed(name, named[name], where), where
    return config._replace(values=values, sources=sources)


def user_file(environ: Mapping[str, str]) -> str:
    """The file of settings that is the user's own."""
    return os.path.join(_xdg(environ, "XDG_CONFIG_HOME", ".config"), "jackline", USER_FILE)


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where things are kept that can be had again."""
    return os.path.join(_xdg(environ, "XDG_CACHE_HOME", ".cache"), "jackline")


def _home(environ: Mapping[str, str], flags: Mapping[str, Setting], layers: _Layers) -> str:
    """Known before the project's file is read: whether that is trusted is written down in the home."""
    named = flags.get("home") or environ.get("JACKLINE_HOME") or layers.values["home"]
    default = os.path.join(_xdg(environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "jackline")
    return os.path.abspath(os.path.expanduser(str(named or default)))


def _binaries(environ: Mapping[str, str], layers: _Layers) -> dict[str, str]:
    """The program of each agent that somebody named; a relative one was meant from where it was written."""
    found = {name: str(table["binary"]) for name, table in layers.agents.items() if "binary" in table}
    for variable, value in environ.items():
        name = variable.removeprefix("JACKLINE_").removesuffix("_BINARY").lower()
        if value and variable == f"JACKLINE_{name.upper()}_BINARY":
            name = next((one for one in found if one.replace("-", "_") == name), name)
            found[name] = value
            layers.sources[f"agents.{name}.binary"] = variable
    return found


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> str:
    return environ.get(variable) or os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)


def project_file(folder: str) -> str:
    """The nearest jackline.toml from the folder upwards, not beyond the repository's root; it may not be there."""
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        parent = os.path.dirname(folder)
        if os.path.exists(path) or os.path.exists(os.path.join(folder, ".git")) or parent == folder:
            return path
        folder = parent


def _take_file(path: str, layers: _Layers) -> None:
    for name, value in _read_toml(path).items():
        if name == "agents":
            _take_agents(value, path, layers)
        elif name in _KEYS:
            layers.put(name, value, path)
        else:
            known = (*_KEYS, "agents")
            raise ConfigError(f"{path}: unknown setting '{name}':{nearest(name, known)} known are {', '.join(known)}")


def _take_project(path: str, layers: _Layers, home: str) -> None:
    tables = _read_toml(path)
    own = next((name for name in tables if name in _KEYS and not _KEYS[name].project), None)
    if own is not None:
        raise ConfigError(f"{path}: a project may not set '{own}'; put it into your own {USER_FILE}")
    if "agents" in tables:
        from jackline.app.trust import is_trusted

        if not is_trusted(home, os.path.dirname(path)):
            raise ConfigError(
                f"{path}: [agents] says which programs are started, and nobody trusts this file as it is now: "
                "read it, then `jackline trust`"
            )
    _take_file(path, layers)


def _take_agents(value: object, path: str, layers: _Layers) -> None:
    from jackline.app.agent_tables import checked

    for name, table in checked(value, path).items():
        layers.agents.setdefault(name, {}).update(table)
        layers.sources.update({f"agents.{name}.{key}": path for key in table})


def nearest(name: str, known: Iterable[str]) -> str:
    """A question for somebody who mistyped a word; empty if nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=3)
    return f" did you mean {' or '.join(near)}?" if near else ""


def _read_toml(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:  # a mistake in it, or bytes that are no text
        message = f"{path}: {error}"
        raise ConfigError(message) from None


def _typed(name: str, value: object, where: str) -> Setting:
    key = _KEYS[name]
    kind = type(key.default)
    if kind is str:
        return _address(str(value), where) if name == "database" else str(value)
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not key.least <= number <= _MOST or (kind is int and not number.is_integer()):
        wanted = f"a {'whole ' if kind is int else ''}number of at least {key.least:g}"
        wanted += f" and at most {_MOST}" if number > _MOST else ""
        raise ConfigError(f"{where}: {name} must be {wanted}, not {value!r}")
    return int(number) if kind is int else number


def _address(value: str, where: str) -> str:
    """A mistyped address must not become a file of that name: its runs would be kept from everybody else."""
    if value and not value.startswith(("postgresql://", "postgres://", "/")):
        # The value is not repeated: it may hold a password.
        raise ConfigError(f"{where}: database must be a postgresql:// address or the whole path of a SQLite file")
    return value
