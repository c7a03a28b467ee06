"""The cost of SQL itself: replays the statements of jackline's own call. Nothing is decided or hashed.

The statements are recorded once at the store's driver. Each replay gets its own ids, keys and numbers, prepared in
advance: only the statements and the two commits are measured.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

from benchmarks import samples
from benchmarks.contenders import Prepared, pragmas
from jackline import clock
from jackline.domain.states import RunState
from jackline.store.driver import Statements, Values
from jackline.store.open import open_store
from jackline.store.sqlite import SqliteDriver

Recorded = list[list[tuple[str, Values]]]  # for each transaction the names of its statements, with their values
_Ready = list[list[tuple[str, tuple[object, ...]]]]
_COUNTED = frozenset({"seq", "event_seq"})
_EVENTS, _CALLS = 2, 1  # that one pair adds to the run
_AHEAD = 1_000


def prepare(folder: str, variant: str) -> Prepared:
    """`variant` is the kind of call: `read` or `effect`."""
    store = open_store(os.path.join(folder, "jackline.db"), create=True)
    driver = cast("SqliteDriver", store.driver)  # to record its statements
    at = clock.wall_ms()
    lease, _ = samples.claim_run(store, samples.create_run(store, samples.SampleSpec(RunState.RUNNING, folder), at), at)
    rule, call_id = samples.SEND if variant == "effect" else samples.READ, samples.new_id(at)
    samples.durable_call(store, lease, samples.READ, samples.new_id(at), at)  # the first one reads more
    recorded = record_statements(driver, lambda: samples.durable_call(store, lease, rule, call_id, at))
    _link_heads(recorded)
    units = _prepare_units(driver, recorded, call_id)
    connection = driver._connection  # noqa: SLF001 - its own connection, with its own settings
    connection.execute(f"PRAGMA synchronous = {'FULL' if variant == 'effect' else 'NORMAL'}")  # as the store commits it

    def pair() -> None:
        for transaction in next(units):
            connection.execute("BEGIN IMMEDIATE")
            for sql, values in transaction:
                connection.execute(sql, values).fetchall()
            connection.execute("COMMIT")

    def close() -> None:
        run = store.runs.get(lease.run_id)
        events = len(store.records.list_events(lease.run_id, limit=1_000_000))
        store.close()
        if run is None or run.event_seq != events or run.status.spent.calls != (events - 1) // _EVENTS:
            raise RuntimeError("the statements did not do what they do for the store")

    return Prepared(pair, pragmas.describe(connection), close)


def record_statements(driver: SqliteDriver, pair: Callable[[], None]) -> Recorded:
    """Record the statements of one pair."""
    recorded: Recorded = []
    write = driver.write

    class Recorder:
        """Records each statement and passes it on."""

        clock = driver.clock

        def __getattr__(self, name: str) -> Callable[[str, Values], Any]:
            def record(statement: str, values: Values) -> object:
                recorded[-1].append((statement, dict(values)))
                return getattr(driver, name)(statement, values)

            return record

    recorder: Any = Recorder()

    def listen(work: Callable[[Statements], Any], *, synced: bool = True) -> object:
        recorded.append([])
        return write(lambda _: work(recorder), synced=synced)

    driver.write = listen  # type: ignore[method-assign, assignment]
    pair()
    driver.write = write  # type: ignore[method-assign]
    return recorded


def _link_heads(recorded: Recorded) -> None:
    """Let the first transaction of a replayed pair follow the last one of the pair before it."""
    moves = [one for transaction in recorded for one in transaction if one[0] == "move_head"]
    at = recorded[0].index(moves[0])
    recorded[0][at] = ("move_head", {**moves[0][1], "previous": moves[-1][1]["chain_head"]})


def _prepare_units(driver: SqliteDriver, recorded: Recorded, call_id: str) -> Iterator[_Ready]:
    """Yield one prepared pair after the other."""
    number = 0
    while True:
        ready = []
        for _ in range(_AHEAD):
            number += 1
            ready.append(
                [[_prepare_statement(driver, one, number, call_id) for one in transaction] for transaction in recorded]
            )
        yield from ready


def _prepare_statement(
    driver: SqliteDriver, statement: tuple[str, Values], number: int, call_id: str
) -> tuple[str, tuple[object, ...]]:
    name, values = statement
    sql, picked = driver._sql[name]  # noqa: SLF001 - the driver's own SQL
    own = f"{call_id[:-8]}{number:08d}"  # in order, as ids are made: otherwise the tables are filled in another order
    key, own_key = (hashlib.sha256(one.encode()).hexdigest() for one in (call_id, own))

    def fresh(column: str, value: object) -> object:
        if isinstance(value, str):
            return value.replace(call_id, own).replace(key, own_key)
        if isinstance(value, int) and column in _COUNTED:
            return value + number * _EVENTS
        return value + number * _CALLS if isinstance(value, int) and column in {"number", "calls"} else value

    return sql, picked({column: fresh(column, value) for column, value in values.items()})
