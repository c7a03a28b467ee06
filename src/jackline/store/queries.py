"""Loads the named queries from `queries/*.sql`; a backend may override some by name. It runs none."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Generic, TypeVar

from jackline.store.rows import columns

T = TypeVar("T")

FOLDER = os.path.join(os.path.dirname(__file__), "queries")

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_COLUMNS = re.compile(r"\{(:?)(\w+)(=?)\}")
_PARAMETER = re.compile(r"'[^']*'|::|:([a-z_][a-z0-9_]*)")


class ConvertedQueries(dict[str, T], Generic[T]):
    """The queries in a driver's parameter style, each converted on first use: a command needs few of them."""

    def __init__(self, queries: Mapping[str, str], convert: Callable[[str, str], T]) -> None:
        """`convert` takes a query's name and its text."""
        super().__init__()
        self._queries, self._convert = queries, convert

    def __missing__(self, name: str) -> T:
        converted = self[name] = self._convert(name, expand_query(self._queries[name]))
        return converted


@cache
def load_queries(backend: str) -> Mapping[str, str]:
    """Every query by name, before `expand_query`; the backend's own replace the shared ones.

    They are read once: a run has three connections.
    """
    return load_shared() | load_overrides(backend)


def load_shared() -> dict[str, str]:
    """The queries of both backends."""
    return _load_folder(FOLDER)


def load_overrides(backend: str) -> dict[str, str]:
    """The queries of one backend."""
    return _load_folder(os.path.join(FOLDER, backend))


def use_percent_parameters(sql: str, expressions: dict[str, str]) -> str:
    """The query with psycopg's parameter style; parameters in `expressions` become SQL expressions."""

    def replace(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        return expressions.get(name) or f"%({name})s"

    return _PARAMETER.sub(replace, sql.replace("%", "%%"))


def use_question_marks(sql: str) -> tuple[str, tuple[str, ...]]:
    """The query with a question mark for each parameter, and their names in order; SQLite binds these faster."""
    names: list[str] = []

    def replace(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        names.append(found[1])
        return "?"

    return _PARAMETER.sub(replace, sql), tuple(names)


def collate_by_bytes(script: str) -> str:
    """A migration for PostgreSQL, in which text is compared by its bytes, as in SQLite."""
    return re.sub(r"^( +\w+ TEXT)\b", r'\1 COLLATE "C"', script, flags=re.MULTILINE)


def _load_folder(path: str) -> dict[str, str]:
    queries: dict[str, str] = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".sql"):
            with open(os.path.join(path, name), encoding="utf-8") as file:
                queries |= parse_queries(file.read())
    return queries


def parse_queries(text: str) -> dict[str, str]:
    """The queries of one file."""
    _, *pieces = _NAME.split(text)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def expand_query(sql: str) -> str:
    """The query without comments, with the columns of the records that it names."""
    return _COLUMNS.sub(_expand_columns, _COMMENT.sub("", sql)).strip()


def _expand_columns(found: re.Match[str]) -> str:
    parameter, record, assignment = found.groups()
    names = columns(record)
    if parameter:
        return ", ".join(f":{name}" for name in names)
    if assignment:
        return ", ".join(f"{name} = excluded.{name}" for name in names)
    return ", ".join(names)
