"""The tables [agents.NAME] of a settings file: checked, and made independent of where the file lies.

What describes a whole new agent (a table with a `command`) is kept as it is: whoever runs that agent judges it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.keys import nearest
from jackline.domain import ids
from jackline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS = ("binary", "model", "effort")
LISTS = ("env", "arguments")
DESCRIBES = ("command", "acp")  # with one of them the table is an agent of its own, and may have further keys


def checked(tables: object, path: str) -> dict[str, dict[str, object]]:
    """Every agent's table, by name."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: agents must be tables, such as [agents.claude]")
    return {name: _checked(name, table, path) for name, table in tables.items()}


def _checked(name: str, table: object, path: str) -> dict[str, object]:
    if not isinstance(table, dict) or not ids.is_chosen(name):
        raise ConfigError(f"{path}: agents.{name} must be a table, and its name letters, digits, '.', '_' and '-'")
    for key, value in table.items():
        _judge(f"{path}: agents.{name}.{key}", key, value, table)
    if "binary" not in table:
        return dict(table)
    return {**table, "binary": _placed(str(table["binary"]), path)}


def _judge(where: str, key: str, value: object, table: Mapping[str, object]) -> None:
    if key in TEXTS and not (isinstance(value, str) and value.strip()):
        raise ConfigError(f"{where} must be text, not {value!r}")
    if key in LISTS and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(f"{where} must be a list of texts, not {value!r}")
    if key not in (*TEXTS, *LISTS) and not any(one in table for one in DESCRIBES):
        known = (*TEXTS, *LISTS, *DESCRIBES)
        raise ConfigError(f"{where} is unknown:{nearest(key, known)} known are {', '.join(known)}")


def _placed(binary: str, path: str) -> str:
    """A bare name stays one, for the PATH; a relative path is one from the file that names it."""
    binary = os.path.expanduser(binary)
    return os.path.join(os.path.dirname(path), binary) if os.sep in binary else binary
