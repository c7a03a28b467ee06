"""Reads foreign SQLite files row by row, also damaged ones. It never changes them."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jackline.features.importers.source_files import SourceUnreadable, get_size, open_file
from jackline.named import NamedTuple
from jackline.store.sqlite_file import is_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jackline.features.importers.import_records import Troubles

MOST_CELL = 4 * 1024 * 1024  # characters or bytes of one cell
_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_WAL_AT, _WAL = 18, b"\x02"
_CUT_OFF = "SQLITE_READONLY_ROLLBACK"
_DAMAGED = "its schema is damaged"

Cells = dict[str, Any]


class RowQuery(NamedTuple):
    """Which rows of a table; `where` is SQL with bound values."""

    table: str
    columns: Sequence[str]
    where: str = ""
    values: tuple[object, ...] = ()
    most: int = -1

    @property
    def description(self) -> str:
        """Which rows, in words."""
        return f"{self.table} of {str(self.values[0])[:100]}" if self.values else self.table


def read_header(path: str) -> bytes:
    """The first bytes of a database; Unreadable if it is not SQLite, or jackline's own.

    Never for a file that this process has open: closing it would drop SQLite's locks.
    """
    if is_marked(path):
        raise SourceUnreadable("it is a jackline database: use its home with --home instead")
    with open_file(path) as file:
        header = file.read(_HEADER)
    if not header.startswith(_MAGIC):
        raise SourceUnreadable("it is not an SQLite database")
    return header


@contextmanager
def open_database(path: str) -> Iterator[SourceDatabase]:
    """Open a database; OSError, Unreadable or sqlite3.Error. No file is created beside it."""
    header = read_header(path)
    with TemporaryDirectory(prefix="jackline-import-") as folder:
        place, still = path, False
        if header[_WAL_AT : _WAL_AT + 1] == _WAL and not os.path.exists(f"{path}-shm"):
            # No process has it open. SQLite would create files beside it, unless its log is empty.
            still = not has_log(path)
            if not still:
                place = os.path.join(folder, "copy")
                for end in ("", "-wal"):
                    with open_file(path + end) as source, open(place + end, "xb") as copy:
                        copyfileobj(source, copy)
        address = f"file:{quote(os.path.abspath(place))}?mode=ro{'&immutable=1' if still else ''}"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            connection.text_factory = bytes  # invalid UTF-8 must not end the reading
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA trusted_schema = OFF")  # the schema is not trusted
            yield _build_database(path, connection)


def _build_database(path: str, connection: sqlite3.Connection) -> SourceDatabase:
    try:
        return SourceDatabase(path, connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != _CUT_OFF:
            raise
        # Not in a copy either: a journal may name any file, which SQLite would then remove.
        raise SourceUnreadable("the last writer was interrupted: open it once with its own program") from None
    except UnicodeDecodeError:  # from SQLite's message, which quotes damaged data
        raise SourceUnreadable(_DAMAGED) from None


def has_log(path: str) -> bool:
    """Whether a log with content is beside it."""
    return get_size(f"{path}-wal") > 0


class SourceDatabase:
    """One file, with the tables and columns of its version."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.tables: Mapping[str, frozenset[str]] = {
            table: frozenset(self._read_names("SELECT name FROM pragma_table_info(?)", table))
            for table in self._read_names("SELECT name FROM sqlite_master WHERE type = 'table'")
        }

    def _read_names(self, sql: str, *values: str) -> list[str]:
        found = self._connection.execute(sql, values).fetchall()
        return [name.decode("utf-8", "replace") for (name,) in found if isinstance(name, bytes)]

    def has(self, table: str, *columns: str) -> bool:
        """Whether the table is there with these columns."""
        return set(columns) <= self.tables.get(table, frozenset()) and table in self.tables

    def define(self, name: str, function: Callable[[object], bool]) -> None:
        """A function of one value, for conditions."""
        self._connection.create_function(name, 1, function)

    def rows(self, query: RowQuery, troubles: Troubles) -> Iterator[tuple[int, Cells]]:
        """The rows by their numbers; a column that this version does not have is None."""
        here = [name for name in query.columns if self.has(query.table, name)]
        if not here:
            return
        cells = ", ".join(
            f"CASE WHEN typeof(\"{name}\") IN ('text', 'blob') THEN substr(\"{name}\", 1, {MOST_CELL}) "
            f'ELSE "{name}" END'
            for name in here
        )
        where = f"WHERE {query.where}" if query.where else ""
        most = query.most + 1 if query.most >= 0 else query.most  # one more shows that there are more
        sql = f'SELECT rowid, {cells} FROM "{query.table}" {where} ORDER BY rowid LIMIT {most}'  # noqa: S608
        row = 0
        try:
            for count, (number, *values) in enumerate(self._connection.execute(sql, query.values)):
                if not isinstance(number, int):
                    raise sqlite3.DataError("a column of its own is called rowid")
                if count == query.most:
                    troubles.add(self.path, query.description, f"only the first {query.most} of them were read")
                    return
                row, place = number, f"row {number} of {query.table}"
                decoded = (self._decode(value, place, troubles) for value in values)
                yield row, {**dict.fromkeys(query.columns), **dict(zip(here, decoded, strict=True))}
        except sqlite3.Error as error:
            troubles.add(self.path, f"{query.table}, after row {row}", error)
        except UnicodeDecodeError:
            troubles.add(self.path, f"{query.table}, after row {row}", _DAMAGED)

    def _decode(self, value: object, place: str, troubles: Troubles) -> object:
        if not isinstance(value, bytes):
            return value
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            troubles.add(self.path, place, f"it is not UTF-8 (byte {error.start}): those bytes were replaced")
            return value.decode("utf-8", "replace")
