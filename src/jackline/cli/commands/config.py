"""`jackline config`: shows each setting, its value and where it comes from. Passwords are masked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.app.setting_keys import KEYS, format_setting
from jackline.cli.output import parse_columns

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_COLUMNS = parse_columns("SETTING VALUE FROM")
_OPEN_KEYS = ("type", "kinds", "labels", "priority", "timeout_seconds", "replies")  # of a channel
INSIDE_RUN = ("*",)


def configure(_parser: CommandParser) -> None:
    pass


def execute(_args: Namespace, home: Home, out: Output) -> int:
    config = home.config
    settings = {key.name: config.values[key.name] for key in KEYS}
    settings["ping"] = mask_ping(str(settings["ping"]))
    settings["database"] = mask_password(str(settings["database"]))
    agents = dict(_iterate_agent_settings(config))
    if out.json:
        everything = {**settings, **agents}
        out.print_json({name: {"value": value, "from": config.sources[name]} for name, value in everything.items()})
        return 0
    rows = [[name, format_setting(value), config.sources[name]] for name, value in settings.items()]
    for name, value in agents.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        rows.append([name, text, config.sources[name]])
    out.print_table(_COLUMNS, rows)
    for line in config.held:
        out.print_note(f"jackline: {line}")
    return 0


def _iterate_agent_settings(config: Config) -> Iterator[tuple[str, object]]:
    """Yield the settings and accounts of single agents and the prices of models, by the names that `sources` uses."""
    for name, table in config.agents.items():
        yield from ((f"agents.{name}.{key}", value) for key, value in table.items() if key != "binary")
    yield from ((f"agents.{name}.binary", path) for name, path in config.binaries.items())
    yield from ((f"accounts.{name}", table) for name, table in config.accounts.items())
    yield from ((f"prices.{pattern}", dict(table)) for pattern, table in config.prices.items())
    yield from ((f"channels.{name}", _mask_channel(table)) for name, table in config.channels.items())


def _mask_channel(table: Mapping[str, object]) -> dict[str, object]:
    """A channel without what would let others read it or write to it: a topic is a password, a URL may hold one."""
    return {key: value if key in _OPEN_KEYS or isinstance(value, dict) else "***" for key, value in table.items()}


def mask_ping(address: str) -> str:
    """Return an address that is pinged without its secret path."""
    return "/".join((*address.split("/")[:3], "***")) if address else ""


def mask_password(address: str) -> str:
    """Return a database address without its password."""
    if "://" not in address:
        return address
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(address)
    except ValueError:  # in an invalid address the password may be anywhere
        return "***"
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = "&".join(_mask_parameter(word) for word in parts.query.split("&")) if parts.query else ""
    return urlunsplit(parts._replace(netloc=f"{name}{colon and ':***'}{at}{host}", query=query))


def _mask_parameter(word: str) -> str:
    name, equals, _ = word.partition("=")
    return f"{name}=***" if equals and "pass" in name.lower() else word
