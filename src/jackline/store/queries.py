"""The named queries: read from `queries/*.sql`, overridden by name per backend. It never runs one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from jackline.store.rows import columns

T = TypeVar("T")

FOLDER = os.path.join(os.path.dirname(__file__), "queries")

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_COLUMNS = re.compile(r"\{(:?)(\w+)(=?)\}")
_PARAMETER = re.compile(r"'[^']*'|::|:([a-z_][a-z0-9_]*)")


class Spelled(dict[str, T], Generic[T]):
    """The queries in a driver's own spelling, each spelled when it is first used: a command needs a few of them."""

    def __init__(self, queries: Mapping[str, str], spell: Callable[[str, str], T]) -> None:
        """`spell` is given a query's name and its text."""
        super().__init__()
        self._queries, self._spell = queries, spell

    def __missing__(self, name: str) -> T:
        spelled = self[name] = self._spell(name, expanded(self._queries[name]))
        return spelled


def load(backend: str) -> dict[str, str]:
    """Every query by its name, not `expanded` yet; the backend's own take the place of the shared ones."""
    return shared() | overrides(backend)


def shared() -> dict[str, str]:
    """The queries that both backends understand."""
    return _folder(FOLDER)


def overrides(backend: str) -> dict[str, str]:
    """The few that differ."""
    return _folder(os.path.join(FOLDER, backend))


def with_percent(sql: str, expressions: dict[str, str]) -> str:
    """The query with psycopg's spelling of parameters; those named in `expressions` become SQL instead."""

    def spell(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        return expressions.get(name) or f"%({name})s"

    return _PARAMETER.sub(spell, sql.replace("%", "%%"))


def with_marks(sql: str) -> tuple[str, tuple[str, ...]]:
    """The query with a question mark for each parameter, and their names in order: SQLite binds these faster."""
    names: list[str] = []

    def spell(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        names.append(found[1])
        return "?"

    return _PARAMETER.sub(spell, sql), tuple(names)


def by_bytes(script: str) -> str:
    """A migration with PostgreSQL's name for text that is compared by its bytes, as SQLite does."""
    return re.sub(r"^( +\w+ TEXT)\b", r'\1 COLLATE "C"', script, flags=re.MULTILINE)


def _folder(path: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".sql"):
            with open(os.path.join(path, name), encoding="utf-8") as file:
                queries |= parse(file.read())
    return queries


def parse(text: str) -> dict[str, str]:
    """The queries of one file."""
    _, *pieces = _NAME.split(text)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def expanded(sql: str) -> str:
    """The query without comments, and with the columns of the records that it names."""
    return _COLUMNS.sub(_columns, _COMMENT.sub("", sql)).strip()


def _columns(found: re.Match[str]) -> str:
    parameter, record, assignment = found.groups()
    names = columns(record)
    if parameter:
        return ", ".join(f":{name}" for name in names)
    if assignment:
        return ", ".join(f"{name} = excluded.{name}" for name in names)
    return ", ".join(names)
