"""`jackline config`: each setting, its value and where that came from. Passwords are masked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.app.keys import KEYS, shown
from jackline.cli.output import columns

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.app.keys import Setting
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

_COLUMNS = columns("SETTING VALUE FROM")


def configure(_parser: Parser) -> None:
    pass


def execute(_args: Namespace, home: Home, out: Output) -> int:
    config = home.config
    settings = {key.name: _shown(config, key.name) for key in KEYS}
    agents = dict(_agents(config))
    if out.json:
        everything = {**settings, **agents}
        out.json_line({name: {"value": value, "from": config.sources[name]} for name, value in everything.items()})
        return 0
    rows = [[name, shown(value), config.sources[name]] for name, value in settings.items()]
    rows += [[name, _text(value), config.sources[name]] for name, value in agents.items()]
    out.table(_COLUMNS, rows)
    for line in config.held:
        out.note(f"jackline: {line}")
    return 0


def _shown(config: Config, name: str) -> Setting:
    value = config.values[name]
    return masked(value) if name == "database" and isinstance(value, str) else value


def _agents(config: Config) -> Iterator[tuple[str, object]]:
    """What is said of single agents, by the name that `sources` uses."""
    for name, table in config.agents.items():
        yield from ((f"agents.{name}.{key}", value) for key, value in table.items() if key != "binary")
    yield from ((f"agents.{name}.binary", path) for name, path in config.binaries.items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def masked(address: str) -> str:
    """An address without its password, wherever in it that stands."""
    if "://" not in address:
        return address
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(address)
    except ValueError:  # an address that nobody can read may have it anywhere
        return "***"
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = "&".join(_masked_word(word) for word in parts.query.split("&")) if parts.query else ""
    return urlunsplit(parts._replace(netloc=f"{name}{colon and ':***'}{at}{host}", query=query))


def _masked_word(word: str) -> str:
    name, equals, _ = word.partition("=")
    return f"{name}=***" if equals and "pass" in name.lower() else word
