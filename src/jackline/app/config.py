"""Settings and where each came from: defaults, then the user's file, the project's file, the environment, flags.

A project's file is written by whoever writes the project, an agent included: it may set how runs are made here, never
where the home is, which database is used or which program is started.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from jackline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    Key("agent", "", "the agent to use"),
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

    def text(self, name: str) -> str:
        """A setting as text."""
        return str(self.values[name])

    def whole(self, name: str) -> int:
        """A setting as a whole number."""
        return int(self.values[name])

    def number(self, name: str) -> float:
        """A setting as a number."""
        return float(self.values[name])


def load(environ: Mapping[str, str], folder: str, flags: Mapping[str, Setting | None] | None = None) -> Config:
    """Read every layer; the later wins. A value that cannot be understood names its place."""
    values: dict[str, Setting] = {key.name: key.default for key in KEYS}
    sources = dict.fromkeys(values, "default")
    binaries: dict[str, str] = {}
    user = os.path.join(_xdg(environ, "XDG_CONFIG_HOME", ".config"), "jackline", USER_FILE)
    _take_file(user, values, sources, binaries, project=False)
    _take_file(_project_file(folder), values, sources, binaries, project=True)
    for name in _KEYS:
        variable = f"JACKLINE_{name.upper()}"
        if environ.get(variable):
            values[name] = _typed(name, environ[variable], variable)
            sources[name] = variable
    for name, value in (flags or {}).items():
        if value is not None:
            sources[name] = f"--{name.replace('_', '-')}"
            values[name] = _typed(name, value, sources[name])
    for name, value in environ.items():
        if name.startswith("JACKLINE_") and name.endswith("_BINARY"):
            binaries[name[len("JACKLINE_") : -len("_BINARY")].lower()] = value
    if not values["home"]:
        values["home"] = os.path.join(_xdg(environ, "XDG_STATE_HOME", os.path.join(".local", "state")), "jackline")
    values["home"] = os.path.abspath(os.path.expanduser(str(values["home"])))
    return Config(values, sources, binaries)


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> str:
    return environ.get(variable) or os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)


def _project_file(folder: str) -> str:
    """The nearest jackline.toml from the folder upwards, not beyond the repository's root."""
    while True:
        path = os.path.join(folder, PROJECT_FILE)
        parent = os.path.dirname(folder)
        if os.path.exists(path) or os.path.exists(os.path.join(folder, ".git")) or parent == folder:
            return path
        folder = parent


def _take_file(
    path: str, values: dict[str, Setting], sources: dict[str, str], binaries: dict[str, str], *, project: bool
) -> None:
    for name, value in _read_toml(path).items():
        if name == "agents" and not project and isinstance(value, dict):
            tables = {agent: one for agent, one in value.items() if isinstance(one, dict)}
            binaries.update({agent: str(one["binary"]) for agent, one in tables.items() if "binary" in one})
            continue
        if name not in _KEYS:
            message = f"{path}: unknown setting '{name}'; known are {', '.join(_KEYS)}"
            raise ConfigError(message)
        if project and not _KEYS[name].project:
            message = f"{path}: a project may not set '{name}'; put it into your own {USER_FILE}"
            raise ConfigError(message)
        values[name] = _typed(name, value, path)
        sources[name] = path


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
