"""Settings and their sources: defaults, then the user's file, the project's file, the environment, flags.

Anybody who can write to the project can write its file, an agent included. It may configure runs, but never the home
or the database. It may choose programs and raise limits only after a person ran `jackline trust`. An invalid project
file is recorded, not raised: read-only commands and `cancel` must still work.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app import paths
from jackline.app.setting_keys import KEYS, KEYS_BY_NAME, format_setting, is_looser, parse_setting, suggest_nearest
from jackline.domain.agent_ref import MARK
from jackline.errors import ConfigError, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jackline.app.setting_keys import Setting

USER_FILE = "config.toml"
_USER_TABLES = ("accounts", "channels")  # tables that a project never has
_FILE_LIMIT = 1_000_000
_PRICES = ("input", "output", "cached")
_DEAREST = 1_000_000
# The program of these agents comes from their arguments: choosing the agent is one step from choosing the program.
AGENTS_NAMED_BY_ARGUMENTS = frozenset({"command", "acp"})


class Config(NamedTuple):
    """Every setting with its source."""

    values: Mapping[str, Setting]
    sources: Mapping[str, str]
    binaries: Mapping[str, str]
    agents: Mapping[str, Mapping[str, object]] = {}
    problem: str = ""  # why the project's file was ignored; no work is started then
    held: tuple[str, ...] = ()  # settings of an untrusted project that were not applied
    prices: Mapping[str, Mapping[str, float]] = {}  # USD per million tokens, by a pattern of model names
    channels: Mapping[str, Mapping[str, object]] = {}  # the user's own, as written: the feature that sends checks them
    loaded_at: int = 0  # before the first file was read, in milliseconds
    accounts: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}  # by agent and name; only the user's file has them

    def get_text(self, name: str) -> str:
        """A setting as text."""
        return str(self.values[name])

    def get_int(self, name: str) -> int:
        """A setting as a whole number."""
        return int(self.values[name])

    def get_float(self, name: str) -> float:
        """A setting as a number."""
        return float(self.values[name])


class _Layers:
    """The settings read so far."""

    def __init__(self, below: _Layers | None = None) -> None:
        self.values: dict[str, Setting] = dict(below.values) if below else {key.name: key.default for key in KEYS}
        self.sources: dict[str, str] = dict(below.sources) if below else dict.fromkeys(self.values, "default")
        tables = below.agents if below else {}
        self.agents: dict[str, dict[str, object]] = {name: dict(table) for name, table in tables.items()}
        self.prices: dict[str, dict[str, float]] = dict(below.prices) if below else {}
        self.channels: dict[str, dict[str, object]] = dict(below.channels) if below else {}
        self.accounts: dict[str, dict[str, dict[str, Any]]] = dict(below.accounts) if below else {}
        self.held: list[str] = []

    def set(self, name: str, value: object, where: str) -> None:
        self.values[name] = parse_setting(name, value, where)
        self.sources[name] = where


def load_config(
    environ: Mapping[str, str],
    folder: str,
    flags: Mapping[str, Setting | None] | None = None,
    *,
    project: bool = True,
) -> Config:
    """Read every layer, the project's only if requested; the later one wins. An invalid value names its source."""
    loaded_at, layers, problem = clock.wall_ms(), _Layers(), ""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    path = find_user_file(environ)
    _apply_tables(read_toml(path), path, layers)
    # The home comes before the project's file: it records whether that file is trusted.
    named = given.get("home") or environ.get("JACKLINE_HOME") or layers.values["home"]
    home = os.path.abspath(os.path.expanduser(str(named or paths.find_state_folder(environ))))
    if project:
        database = given.get("database") or environ.get("JACKLINE_DATABASE") or layers.values["database"]
        layers, problem = _apply_project(paths.find_project_file(folder), layers, home, str(database))
    for name in KEYS_BY_NAME:
        variable = f"JACKLINE_{name.upper()}"
        if environ.get(variable):
            layers.set(name, environ[variable], variable)
    for name, value in given.items():
        layers.set(name, value, f"--{name.replace('_', '-')}")
    layers.values["home"] = home
    if env_file := str(layers.values["env_file"]):
        layers.values["env_file"] = os.path.abspath(os.path.expanduser(env_file))
    binaries = _find_binaries(environ, layers)
    return Config(
        values=layers.values,
        sources=layers.sources,
        binaries=binaries,
        agents=layers.agents,
        problem=problem,
        held=tuple(layers.held),
        prices=layers.prices,
        channels=layers.channels,
        loaded_at=loaded_at,
        accounts=layers.accounts,
    )


def add_run_settings(config: Config, layers: Iterable[tuple[str, Mapping[str, Setting]]]) -> Config:
    """Add the settings of a task and a job file: they win over everything except flags, the later over the earlier."""
    values, sources = dict(config.values), dict(config.sources)
    for where, named in layers:
        for name in (one for one in named if not config.sources[one].startswith("--")):
            values[name], sources[name] = parse_setting(name, named[name], where), where
    return config._replace(values=values, sources=sources)


def find_user_file(environ: Mapping[str, str]) -> str:
    """The path of the user's own settings."""
    return os.path.join(paths.find_config_folder(environ), USER_FILE)


def _find_binaries(environ: Mapping[str, str], layers: _Layers) -> dict[str, str]:
    """Find the configured program of each agent; a relative path starts at the file that names it."""
    found = {name: str(table["binary"]) for name, table in layers.agents.items() if "binary" in table}
    for variable, value in environ.items():
        name = variable.removeprefix("JACKLINE_").removesuffix("_BINARY").lower()
        if value and variable == f"JACKLINE_{name.upper()}_BINARY":
            name = next((one for one in found if one.replace("-", "_") == name), name)
            found[name] = value
            layers.sources[f"agents.{name}.binary"] = variable
    return found


def _apply_tables(tables: Mapping[str, Any], path: str, layers: _Layers) -> None:
    for name, value in tables.items():
        if name == "agents":
            from jackline.app.agent_settings import check_tables

            for agent, table in check_tables(value, path).items():
                layers.agents.setdefault(agent, {}).update(table)
                layers.sources.update({f"agents.{agent}.{key}": path for key in table})
        elif name == "prices":
            own = _read_prices(value, path)  # before those of an earlier layer: the first match wins
            layers.prices = own | {one: price for one, price in layers.prices.items() if one not in own}
            layers.sources.update({f"prices.{one}": path for one in own})
        elif name == "channels":
            if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
                raise ConfigError(f"{path}: channels must be tables: write [channels.NAME]")
            layers.channels = value
            layers.sources.update({f"channels.{channel}": path for channel in value})
        elif name == "accounts":
            from jackline.app.accounts import check_accounts

            layers.accounts = check_accounts(value, path)
            layers.sources.update({f"accounts.{one}": path for one in layers.accounts})
        elif name in KEYS_BY_NAME:
            if name == "env_file" and not isinstance(value, str):
                raise ConfigError(f"{path}: env_file must be the path of a file, not {value!r}")
            is_path = name == "env_file" and value  # a relative one starts at the file
            layers.set(name, os.path.join(os.path.dirname(path), os.path.expanduser(value)) if is_path else value, path)
        else:
            known = (*KEYS_BY_NAME, "agents", "prices", *_USER_TABLES)
            raise ConfigError(
                f"{path}: unknown setting '{name}':{suggest_nearest(name, known)} known are {', '.join(known)}"
            )


def _read_prices(tables: object, path: str) -> dict[str, dict[str, float]]:
    """Read `[prices."PATTERN"]` tables: input, output and cached, in USD per million tokens."""
    wanted = 'write [prices."MODEL*"] with input and output, in USD per million tokens, and optionally cached'
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{path}: prices must be tables: {wanted}")
    for pattern, table in tables.items():
        for name, value in table.items():
            is_amount = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _DEAREST
            if name not in _PRICES or not is_amount:
                raise ConfigError(f"{path}: prices.{pattern!r}.{name} is not a price: {wanted}")
        if not {"input", "output"} <= table.keys():
            raise ConfigError(f"{path}: prices.{pattern!r} is not complete: {wanted}")
    return tables


def _apply_project(path: str, layers: _Layers, home: str, database: str) -> tuple[_Layers, str]:
    """The layers with the whole project file; or without it, and the reason."""
    more = _Layers(layers)
    try:
        tables = read_toml(path)
        if tables:
            _apply_project_tables(tables, path, more, home, database)
    except ConfigError as error:
        return layers, str(error)
    return more, ""


def _apply_project_tables(tables: dict[str, Any], path: str, layers: _Layers, home: str, database: str) -> None:
    from jackline.app.trust import is_trusted

    own = next(
        (name for name in tables if name in _USER_TABLES or (name in KEYS_BY_NAME and not KEYS_BY_NAME[name].project)),
        None,
    )
    if own is not None:
        raise ConfigError(f"{path}: a project may not set '{own}'; put it into your own {USER_FILE}")
    _refuse_accounts(tables, path)
    if not is_trusted(home, database, os.path.dirname(path)):
        tables = _drop_untrusted(tables, path, layers)
    else:
        tables = _drop_loosening(tables, path, layers)
    _apply_tables(tables, path, layers)


def _refuse_accounts(tables: Mapping[str, Any], path: str) -> None:
    """Refuse a project that decides as whom an agent works, or which variables it gets, even if it is trusted."""
    hint = f"put it into your own {USER_FILE}"
    agents = tables.get("agents")
    for name, table in agents.items() if isinstance(agents, dict) else ():
        if isinstance(table, dict) and "env_file" in table:
            raise ConfigError(f"{path}: a project may not set agents.{name}.env_file; {hint}")
    for name in ("agent", "fallback", "auto"):
        if MARK in str(tables.get(name, "")):
            raise ConfigError(f"{path}: {name}: a project may not choose an account; write the agent alone")


def _drop_untrusted(tables: dict[str, Any], path: str, layers: _Layers) -> dict[str, Any]:
    """Keep the settings that an untrusted project may make; record the others."""
    _refuse_programs(tables, path)
    kept = {}
    for name, value in tables.items():
        if name == "prices":
            layers.held.append(f"{path}: [prices] is ignored: this project is not trusted (`jackline trust`)")
        elif name in KEYS_BY_NAME and KEYS_BY_NAME[name].program:
            layers.held.append(f"{path}: {name} names a program, and this project is not trusted (`jackline trust`)")
        elif name in KEYS_BY_NAME and is_looser(name, parse_setting(name, value, path), layers.values[name]):
            layers.held.append(format_held_limit(path, name, value, layers.values[name]))
        else:
            kept[name] = value
    return kept


def _drop_loosening(tables: dict[str, Any], path: str, layers: _Layers) -> dict[str, Any]:
    """Keep the settings that a trusted project may make; record the others."""
    kept = {}
    for name, value in tables.items():
        key = KEYS_BY_NAME.get(name)
        if key and key.only_tightens and is_looser(name, parse_setting(name, value, path), layers.values[name]):
            layers.held.append(format_held_limit(path, name, value, layers.values[name]))
        else:
            kept[name] = value
    return kept


def format_held_limit(path: str, name: str, value: Setting, holds: Setting) -> str:
    """The message about a setting of a project that was not applied."""
    kept, asked = format_setting(holds), format_setting(value)
    if KEYS_BY_NAME[name].only_tightens:
        return f"{path}: {name} stays {kept}, not {asked}: a project can only make it stricter"
    return f"{path}: {name} stays {kept}, not {asked}: this project is not trusted (`jackline trust`)"


def _refuse_programs(tables: Mapping[str, object], path: str) -> None:
    hint = "and this version of the file is not trusted: read it, then `jackline trust`"
    if "agents" in tables:
        raise ConfigError(f"{path}: [agents] chooses the programs to start, {hint}")
    for name in ("agent", "fallback", "auto"):
        names = {one.strip() for one in str(tables.get(name, "")).split(",")}
        if names & AGENTS_NAMED_BY_ARGUMENTS:
            raise ConfigError(f"{path}: {name} names an agent that starts any program, {hint}")


def read_toml(path: str) -> dict[str, Any]:
    """Read a settings file; a missing one is empty, ConfigError for one that cannot be used."""
    if not os.path.exists(path):
        return {}
    import tomllib

    from jackline.app.text_files import read_regular_text

    try:
        return tomllib.loads(read_regular_text(path, _FILE_LIMIT).replace("\r\n", "\n"))
    except UsageError as error:
        raise ConfigError(error) from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None
