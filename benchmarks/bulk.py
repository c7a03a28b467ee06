"""Builds a database with many runs quickly: copies runs that the store wrote, with new ids and times.

The copies are as valid as the originals: every id is replaced everywhere, the digests of the rows and the hash chain
are rebuilt, and numbers continue in each repository. It knows which columns hold ids, times, digests and hashes, and
nothing else about the tables.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import samples
from jackline.domain import ids
from jackline.domain.events import GENESIS, chain
from jackline.domain.states import RunState
from jackline.store.open import open_store
from jackline.store.record_digests import CALL_COLUMNS, RECEIPT_COLUMNS, RUN_COLUMNS, STEP_COLUMNS, digest_row

Value = str | int | float | None
# Many are active, so that a page of any state and repository is full in the small database too: a read that finds
# less does less, and would make the big database look slow.
_STATES = (
    *(RunState.SUCCEEDED,) * 7,
    *(RunState.FAILED,) * 3,
    *(RunState.WAITING,) * 3,
    *(RunState.QUEUED,) * 3,
    *(RunState.RUNNING,) * 3,
    RunState.CANCELLED,
)
_AGENTS = ("scripted", "claude", "codex")
_TASKS = ("adhoc", "nightly", "review")
_TEMPLATES = 120  # every state with every agent in two repositories
_APART_MS = 1_000
_ID_LENGTH = len(ids.make(0, bytes(ids.RANDOM_BYTES)))
# The tables whose rows have a digest in an event, and the columns that it covers.
_COVERED = {
    "runs": RUN_COLUMNS,
    "calls": CALL_COLUMNS,
    "receipts": RECEIPT_COLUMNS,
    **{f"{record}s": columns for record, columns in STEP_COLUMNS.items()},
}
_BATCH = 2_000  # runs whose rows are held in memory at once


@dataclass(frozen=True, slots=True)
class RunTable:
    """A table with rows of runs, and the column of the run's id."""

    name: str
    columns: tuple[str, ...]
    owner: str


@dataclass(frozen=True, slots=True)
class RunTemplate:
    """All rows of one run."""

    run_id: str
    other_ids: tuple[str, ...]
    created_at: int
    rows: tuple[tuple[RunTable, tuple[Value, ...]], ...]
    digests: tuple[str, ...]  # of each row; empty if no event covers it


def build(path: str, repositories: tuple[str, ...], runs: int, at: int) -> None:
    """Build a database of `runs` runs, the oldest created at `at`."""
    _write_templates(path, repositories, min(runs, _TEMPLATES), at)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")  # no other process reads it yet
    templates = _read_templates(connection)
    connection.execute("BEGIN")
    _copy_runs(connection, templates, range(len(templates), runs))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)  # otherwise the disk would still be busy during the measurements
    os.close(descriptor)


def _write_templates(path: str, repositories: tuple[str, ...], count: int, at: int) -> None:
    store = open_store(path, create=True)
    for number in range(count):
        by_state, by_agent = divmod(number, len(_STATES)), number // (len(_STATES) * len(repositories))
        wanted = samples.SampleSpec(
            state=_STATES[by_state[1]],
            repository=repositories[by_state[0] % len(repositories)],
            agent=_AGENTS[by_agent % len(_AGENTS)],
            task=_TASKS[number % len(_TASKS)],
        )
        samples.write_run(store, wanted, at + number * _APART_MS)
    store.close()


def _find_run_tables(connection: sqlite3.Connection) -> list[RunTable]:
    """The tables with rows of runs; `runs` first, because others refer to it."""
    tables = []
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'runs', name"
    ):
        columns = tuple(row[1] for row in connection.execute(f"PRAGMA table_info({name})"))
        owner = "id" if name == "runs" else next((one for one in ("run_id", "stream") if one in columns), None)
        if owner is not None:
            tables.append(RunTable(name, columns, owner))
    return tables


def _read_templates(connection: sqlite3.Connection) -> list[RunTemplate]:
    tables = _find_run_tables(connection)
    found = connection.execute("SELECT id, created_at FROM runs ORDER BY created_at, id").fetchall()
    return [_read_template(connection, tables, run_id, created_at) for run_id, created_at in found]


def _read_template(connection: sqlite3.Connection, tables: list[RunTable], run_id: str, created_at: int) -> RunTemplate:
    rows = tuple(
        (table, row)
        for table in tables
        for row in connection.execute(f"SELECT * FROM {table.name} WHERE {table.owner} = ?", (run_id,))
    )
    other = tuple(
        str(row[table.columns.index("id")]) for table, row in rows if "id" in table.columns and table.name != "runs"
    )
    digests = tuple(_digest(table, dict(zip(table.columns, row, strict=True))) for table, row in rows)
    return RunTemplate(run_id, other, created_at, rows, digests)


def _digest(table: RunTable, values: dict[str, Value]) -> str:
    return digest_row(values, _COVERED[table.name]) if table.name in _COVERED else ""


def _copy_runs(connection: sqlite3.Connection, templates: list[RunTemplate], numbers: range) -> None:
    next_number = dict(connection.execute("SELECT id, next_number FROM repositories"))
    source = random.Random(7)
    first = templates[0].created_at
    for begin in range(numbers.start, numbers.stop, _BATCH):
        rows: dict[RunTable, list[tuple[Value, ...]]] = {}
        for number in range(begin, min(begin + _BATCH, numbers.stop)):
            template = templates[number % len(templates)]
            for table, row in _copy_template(template, first + number * _APART_MS, source, next_number):
                rows.setdefault(table, []).append(row)
        for table, many in rows.items():
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({marks})", many)
    counters = ((number, repository) for repository, number in next_number.items())
    connection.executemany("UPDATE repositories SET next_number = ? WHERE id = ?", counters)


def _copy_template(
    template: RunTemplate, at: int, source: random.Random, next_number: dict[str, int]
) -> Iterator[tuple[RunTable, tuple[Value, ...]]]:
    renamed = {old: ids.make(at, source.randbytes(ids.RANDOM_BYTES)) for old in (template.run_id, *template.other_ids)}
    moved = [(table, _shift_row(table, row, at - template.created_at, renamed)) for table, row in template.rows]
    for table, values in moved:
        if table.name == "runs":
            repository = str(values["repository"])
            values["number"] = next_number[repository]
            next_number[repository] += 1
    _rebuild_digests(moved, template.digests)
    _rebuild_chain(moved)
    for table, values in moved:
        yield table, tuple(values.values())


def _shift_row(table: RunTable, row: tuple[Value, ...], later: int, renamed: dict[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for column, value in zip(table.columns, row, strict=True):
        if isinstance(value, str):
            values[column] = _replace_all(value, renamed)
        elif value is not None and (column == "at" or column.endswith("_at")):
            values[column] = int(value) + later
        else:
            values[column] = value
    return values


def _replace_all(text: str, renamed: dict[str, str]) -> str:
    if len(text) < _ID_LENGTH:
        return text
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text


def _rebuild_digests(rows: list[tuple[RunTable, dict[str, Value]]], old: tuple[str, ...]) -> None:
    """Put the digests of the copied rows into the events. Earlier digests of a row, which no check reads, stay."""
    renamed = {digest: _digest(table, row) for (table, row), digest in zip(rows, old, strict=True) if digest}
    for table, row in rows:
        if table.name == "events":
            row["data"] = _replace_all(str(row["data"]), renamed)


def _rebuild_chain(rows: list[tuple[RunTable, dict[str, Value]]]) -> None:
    """Hash the events of the copy again, and replace references to the old hashes."""
    hashes: dict[Value, str] = {}
    previous = GENESIS
    for event in sorted((row for table, row in rows if table.name == "events"), key=lambda row: int(row["seq"] or 0)):
        previous = chain(
            previous,
            str(event["stream"]),
            int(event["seq"] or 0),
            int(event["at"] or 0),
            str(event["kind"]),
            str(event["actor"]),
            str(event["data"]),
        )
        hashes[event["hash"]] = previous
        event["hash"] = previous
    for _, row in rows:
        if "chain_head" in row:
            row["chain_head"] = hashes.get(row["chain_head"], row["chain_head"])
