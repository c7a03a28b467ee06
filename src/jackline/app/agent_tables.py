"""Checks the tables [agents.NAME] of a config file, and resolves their relative paths.

A table that defines a new agent (it has a `command`) is kept as it is: the agent's loader checks it.
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
DEFINING_KEYS = ("command", "acp")  # a table with one of these defines an agent, and may have more keys


def checked(tables: object, path: str) -> dict[str, dict[str, object]]:
    """Check every agent's table; returns them by name."""
    if not isinstance(tables, dict):
        raise ConfigError(f"{path}: agents must be tables, such as [agents.claude]")
    return {name: _check_table(name, table, path) for name, table in tables.items()}


def _check_table(name: str, table: object, path: str) -> dict[str, object]:
    if not isinstance(table, dict) or not ids.is_chosen(name):
        raise ConfigError(f"{path}: agents.{name} must be a table, and its name letters, digits, '.', '_' and '-'")
    for key, value in table.items():
        _check_value(f"{path}: agents.{name}.{key}", key, value, table)
    if "binary" not in table:
        return dict(table)
    return {**table, "binary": _resolve_binary(str(table["binary"]), path)}


def _check_value(where: str, key: str, value: object, table: Mapping[str, object]) -> None:
    if key in TEXTS and not (isinstance(value, str) and value.strip()):
        raise ConfigError(f"{where} must be text, not {value!r}")
    if key in LISTS and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ConfigError(f"{where} must be a list of strings, not {value!r}")
    if key not in (*TEXTS, *LISTS) and not any(one in table for one in DEFINING_KEYS):
        known = (*TEXTS, *LISTS, *DEFINING_KEYS)
        raise ConfigError(f"{where} is unknown:{nearest(key, known)} known keys are {', '.join(known)}")


def _resolve_binary(binary: str, path: str) -> str:
    """A bare name stays, for the PATH; a relative path starts from the config file."""
    binary = os.path.expanduser(binary)
    return os.path.join(os.path.dirname(path), binary) if os.sep in binary else binary
