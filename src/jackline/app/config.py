"""Settings and where each came from: defaults, then the user's file, the project's file, the environment, flags.

A project's file is written by whoever writes the project, an agent included: it may set how runs are made here, never
where the home is or which database is used. Which program is started, and limits that are higher than without it, it
may set only once a person has said `jackline trust`. What is wrong with it is kept, not raised: it must not take away
the commands that look and that stop.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.app import places
from jackline.app.keys import BY_NAME, KEYS, loosens, nearest, shown, typed
from jackline.errors import ConfigError, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jackline.app.keys import Setting

USER_FILE = "config.toml"
_LONGEST = 1_000_000
# An agent whose program is named by words: whoever chooses it is one step from choosing the program.
NAMED_BY_WORDS = frozenset({"command", "acp"})


class Config(NamedTuple):
    """Every setting with its source."""

    values: Mapping[str, Setting]
    sources: Mapping[str, str]
    binaries: Mapping[str, str]
    agents: Mapping[str, Mapping[str, object]] = {}
    problem: str = ""  # why the project's file was left out; whoever starts work refuses then
    held: tuple[str, ...] = ()  # what an untrusted project's file says and does not get

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

    def __init__(self, below: _Layers | None = None) -> None:
        self.values: dict[str, Setting] = dict(below.values) if below else {key.name: key.default for key in KEYS}
        self.sources: dict[str, str] = dict(below.sources) if below else dict.fromkeys(self.values, "default")
        tables = below.agents if below else {}
        self.agents: dict[str, dict[str, object]] = {name: dict(table) for name, table in tables.items()}
        self.held: list[str] = []

    def put(self, name: str, value: object, where: str) -> None:
        self.values[name] = typed(name, value, where)
        self.sources[name] = where


def load(
    environ: Mapping[str, str],
    folder: str,
    flags: Mapping[str, Setting | None] | None = None,
    *,
    project: bool = True,
) -> Config:
    """Read every layer, the project's only if asked to; the later wins. A value that is wrong names its place."""
    layers, problem = _Layers(), ""
    said = {name: value for name, value in (flags or {}).items() if value is not None}
    _take_file(user_file(environ), layers)
    home = _home(environ, said, layers)
    if project:
        layers, problem = _with_project(places.project_file(folder), layers, home)
    for name in BY_NAME:
        variable = f"JACKLINE_{name.upper()}"
        if environ.get(variable):
            layers.put(name, environ[variable], variable)
    for name, value in said.items():
        layers.put(name, value, f"--{name.replace('_', '-')}")
    layers.values["home"] = home
    binaries = _binaries(environ, layers)
    return Config(layers.values, layers.sources, binaries, layers.agents, problem, tuple(layers.held))


def beneath_flags(config: Config, layers: Iterable[tuple[str, Mapping[str, Setting]]]) -> Config:
    """With the settings of a task and a job file: they win over everything but flags, the later over the earlier."""
    values, sources = dict(config.values), dict(config.sources)
    for where, named in layers:
        for name in (one for one in named if not config.sources[one].startswith("--")):
            values[name], sources[name] = typed(name, named[name], where), where
    return config._replace(values=values, sources=sources)


def user_file(environ: Mapping[str, str]) -> str:
    """The file of settings that is the user's own."""
    return os.path.join(places.config_folder(environ), USER_FILE)


def _home(environ: Mapping[str, str], flags: Mapping[str, Setting], layers: _Layers) -> str:
    """Known before the project's file is read: whether that is trusted is written down in the home."""
    named = flags.get("home") or environ.get("JACKLINE_HOME") or layers.values["home"]
    return os.path.abspath(os.path.expanduser(str(named or places.state_folder(environ))))


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


def _take_file(path: str, layers: _Layers) -> None:
    _take(_read_toml(path), path, layers)


def _take(tables: Mapping[str, Any], path: str, layers: _Layers) -> None:
    for name, value in tables.items():
        if name == "agents":
            _take_agents(value, path, layers)
        elif name in BY_NAME:
            layers.put(name, value, path)
        else:
            known = (*BY_NAME, "agents")
            raise ConfigError(f"{path}: unknown setting '{name}':{nearest(name, known)} known are {', '.join(known)}")


def _with_project(path: str, layers: _Layers, home: str) -> tuple[_Layers, str]:
    """The layers with the project's file, all of it; or without, and what is wrong with it."""
    more = _Layers(layers)
    try:
        tables = _read_toml(path)
        if tables:
            _take_project(tables, path, more, home)
    except ConfigError as error:
        return layers, str(error)
    return more, ""


def _take_project(tables: dict[str, Any], path: str, layers: _Layers, home: str) -> None:
    from jackline.app.trust import is_trusted

    own = next((name for name in tables if name in BY_NAME and not BY_NAME[name].project), None)
    if own is not None:
        raise ConfigError(f"{path}: a project may not set '{own}'; put it into your own {USER_FILE}")
    if not is_trusted(home, os.path.dirname(path)):
        tables = _tightening(tables, path, layers)
    _take(tables, path, layers)


def _tightening(tables: dict[str, Any], path: str, layers: _Layers) -> dict[str, Any]:
    """What a project that nobody trusts gets of its settings."""
    _refuse_programs(tables, path)
    kept = {}
    for name, value in tables.items():
        if name in BY_NAME and BY_NAME[name].program:
            layers.held.append(f"{path}: {name} names a program, and nobody trusts this project (`jackline trust`)")
        elif name in BY_NAME and loosens(name, typed(name, value, path), layers.values[name]):
            layers.held.append(held(path, name, value, layers.values[name]))
        else:
            kept[name] = value
    return kept


def held(path: str, name: str, value: Setting, holds: Setting) -> str:
    """What a person is told about a limit that was not raised."""
    return f"{path}: {name} stays {shown(holds)}, not {shown(value)}: nobody trusts this project (`jackline trust`)"


def _refuse_programs(tables: Mapping[str, object], path: str) -> None:
    cure = "and nobody trusts this file as it is now: read it, then `jackline trust`"
    if "agents" in tables:
        raise ConfigError(f"{path}: [agents] says which programs are started, {cure}")
    for name in ("agent", "fallback", "auto"):
        words = {one.strip() for one in str(tables.get(name, "")).split(",")}
        if words & NAMED_BY_WORDS:
            raise ConfigError(f"{path}: {name} asks for an agent that starts any program, {cure}")


def _take_agents(value: object, path: str, layers: _Layers) -> None:
    from jackline.app.agent_tables import checked

    for name, table in checked(value, path).items():
        layers.agents.setdefault(name, {}).update(table)
        layers.sources.update({f"agents.{name}.{key}": path for key in table})


def _read_toml(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib

    from jackline.app.texts import regular_text

    try:
        return tomllib.loads(regular_text(path, _LONGEST).replace("\r\n", "\n"))
    except UsageError as error:
        raise ConfigError(error) from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None
