"""A database with many runs, made quickly: runs that the store wrote, copied with ids and times of their own.

The copies are as valid as the originals: every id is new wherever it stands, the hash chain is made again,
numbers go on in each repository. It knows which columns carry ids, times and hashes, and nothing else about
the tables.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks import samples
from jackline.domain import ids
from jackline.domain.events import GENESIS, chain
from jackline.domain.states import RunState
from jackline.store.open import open_store

Value = str | int | float | None
# Many that are active, so that a page of any state and repository is full in the small database too: a read
# that finds less does less, and would make the big database look slow.
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
_BATCH = 2_000  # runs whose rows are held in memory at once


@dataclass(frozen=True, slots=True)
class Place:
    """A table, and where the run's id stands in it."""

    table: str
    columns: tuple[str, ...]
    owner: str


@dataclass(frozen=True, slots=True)
class Template:
    """Everything that the store wrote about one run."""

    run_id: str
    other_ids: tuple[str, ...]
    created_at: int
    rows: tuple[tuple[Place, tuple[Value, ...]], ...]


def build(path: str, repositories: tuple[str, ...], runs: int, at: int) -> None:
    """A database of `runs` runs, the oldest made at `at`."""
    _write_templates(path, repositories, min(runs, _TEMPLATES), at)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")  # nobody else reads it yet
    templates = _templates(connection)
    connection.execute("BEGIN")
    _copy(connection, templates, range(len(templates), runs))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)  # else the disk is still busy with it while others are measured
    os.close(descriptor)


def _write_templates(path: str, repositories: tuple[str, ...], count: int, at: int) -> None:
    store = open_store(path, create=True)
    for number in range(count):
        by_state, by_agent = divmod(number, len(_STATES)), number // (len(_STATES) * len(repositories))
        wanted = samples.Wanted(
            state=_STATES[by_state[1]],
            repository=repositories[by_state[0] % len(repositories)],
            agent=_AGENTS[by_agent % len(_AGENTS)],
            task=_TASKS[number % len(_TASKS)],
        )
        samples.complete(store, wanted, at + number * _APART_MS)
    store.close()


def _places(connection: sqlite3.Connection) -> list[Place]:
    """The tables that belong to a run, by the column that names it; `runs` first, as others refer to it."""
    places = []
    for (table,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name <> 'runs', name"
    ):
        columns = tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        owner = "id" if table == "runs" else next((name for name in ("run_id", "stream") if name in columns), None)
        if owner is not None:
            places.append(Place(table, columns, owner))
    return places


def _templates(connection: sqlite3.Connection) -> list[Template]:
    places = _places(connection)
    found = connection.execute("SELECT id, created_at FROM runs ORDER BY created_at, id").fetchall()
    return [_template(connection, places, run_id, created_at) for run_id, created_at in found]


def _template(connection: sqlite3.Connection, places: list[Place], run_id: str, created_at: int) -> Template:
    rows = tuple(
        (place, row)
        for place in places
        for row in connection.execute(f"SELECT * FROM {place.table} WHERE {place.owner} = ?", (run_id,))
    )
    other = tuple(
        str(row[place.columns.index("id")]) for place, row in rows if "id" in place.columns and place.table != "runs"
    )
    return Template(run_id, other, created_at, rows)


def _copy(connection: sqlite3.Connection, templates: list[Template], numbers: range) -> None:
    next_number = dict(connection.execute("SELECT id, next_number FROM repositories"))
    source = random.Random(7)
    first = templates[0].created_at
    for begin in range(numbers.start, numbers.stop, _BATCH):
        rows: dict[Place, list[tuple[Value, ...]]] = {}
        for number in range(begin, min(begin + _BATCH, numbers.stop)):
            template = templates[number % len(templates)]
            for place, row in _copied(template, first + number * _APART_MS, source, next_number):
                rows.setdefault(place, []).append(row)
        for place, many in rows.items():
            marks = ", ".join("?" * len(place.columns))
            connection.executemany(f"INSERT INTO {place.table} VALUES ({marks})", many)
    connection.executemany("UPDATE repositories SET next_number = ? WHERE id = ?", _turned(next_number.items()))


def _turned(pairs: Iterable[tuple[str, int]]) -> Iterator[tuple[int, str]]:
    return ((number, repository) for repository, number in pairs)


def _copied(
    template: Template, at: int, source: random.Random, next_number: dict[str, int]
) -> Iterator[tuple[Place, tuple[Value, ...]]]:
    renamed = {old: ids.make(at, source.randbytes(ids.RANDOM_BYTES)) for old in (template.run_id, *template.other_ids)}
    moved = [(place, _moved(place, row, at - template.created_at, renamed)) for place, row in template.rows]
    _chain_again(moved)
    for place, values in moved:
        if place.table == "runs":
            repository = str(values["repository"])
            values["number"] = next_number[repository]
            next_number[repository] += 1
        yield place, tuple(values.values())


def _moved(place: Place, row: tuple[Value, ...], later: int, renamed: dict[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for column, value in zip(place.columns, row, strict=True):
        if isinstance(value, str):
            values[column] = _renamed(value, renamed)
        elif value is not None and (column == "at" or column.endswith("_at")):
            values[column] = int(value) + later
        else:
            values[column] = value
    return values


def _renamed(text: str, renamed: dict[str, str]) -> str:
    if len(text) < _ID_LENGTH:
        return text
    for old, new in renamed.items():
        text = text.replace(old, new)
    return text


def _chain_again(rows: list[tuple[Place, dict[str, Value]]]) -> None:
    """Hash the events of the copy, and put the new hashes where the old ones are referred to."""
    hashes: dict[Value, str] = {}
    previous = GENESIS
    for event in sorted((row for place, row in rows if place.table == "events"), key=lambda row: int(row["seq"] or 0)):
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
