"""Whether reading stays as fast as on the first day: the same reads in a small and in a big database."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import bulk, command
from benchmarks.measure import Contender, Sample, interleave
from benchmarks.report import Line, Table, compare
from jackline import clock
from jackline.app import paths
from jackline.domain.ids import repository_id
from jackline.domain.states import ACTIVE
from jackline.store.models import RunQuery
from jackline.store.open import open_store
from jackline.store.store import Store

KEY = "many-runs"
GOAL = 1.5
_DAY_MS = 86_400_000
_REPEAT = 20


@dataclass(frozen=True, slots=True)
class Instance:
    """A home with its database open, and the run in the middle of it."""

    label: str
    home: str
    store: Store
    run_id: str
    since: int


Read = Callable[[Store], object]


def measure(folder: str, *, quick: bool) -> Table:
    repositories = tuple(os.path.join(folder, name) for name in ("importer", "website"))
    for path in repositories:
        os.mkdir(path)
    sizes = (1_000, 10_000 if quick else 100_000)
    instances = [_build_instance(folder, repositories, size) for size in sizes]
    wrong = instances[0].store.verify.check_all()
    if wrong:
        raise ValueError(f"the sample database is not valid: {wrong[0]} (and {len(wrong) - 1} more)")
    lines = _measure_in_process(instances, repositories[0], quick=quick) + _measure_commands(
        instances, repositories[0], quick=quick
    )
    notes = tuple(f"{one.label}: {_format_counts(one.store)}" for one in instances)
    for one in instances:
        one.store.close()
    return Table(KEY, f"{sizes[1]:,} runs against {sizes[0]:,}", tuple(lines), notes)


def _build_instance(folder: str, repositories: tuple[str, ...], size: int) -> Instance:
    home = os.path.join(folder, f"home-{size}")
    os.mkdir(home)
    database = paths.find_database(home, "")
    begin = clock.wall_ms() - 30 * _DAY_MS
    bulk.build(database, repositories, size, begin)
    store = open_store(database, create=False)
    newest = store.runs.list_page(RunQuery(limit=1))[0]
    half = (begin + newest.created_at) // 2
    middle = next(
        row
        for row in store.runs.list_page(RunQuery(states=("succeeded",), before=(half, ""), limit=50))
        if row.path == repositories[0]
    )
    return Instance(f"{size:,} runs", home, store, middle.id, newest.created_at - 100_000)


def _format_counts(store: Store) -> str:
    counts = store.admin.get_status().counts
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


# --- inside one process


def _measure_in_process(instances: list[Instance], repository: str, *, quick: bool) -> list[Line]:
    rounds = 5 if quick else 30
    reads = [_build_reads(one, repository_id(repository)) for one in instances]
    lines = []
    for name in reads[0]:
        contenders = [
            Contender(one.label, _build_turn(one.store, read[name])) for one, read in zip(instances, reads, strict=True)
        ]
        lines.append(_build_line(name, interleave(contenders, rounds, warm_up=2)))
    return lines


def _build_reads(one: Instance, repository: str) -> Mapping[str, Read]:
    queries = {
        "newest": RunQuery(),
        "of a repository": RunQuery(repository=repository),
        "of a repository, active": RunQuery(repository=repository, states=tuple(sorted(ACTIVE))),
        "active": RunQuery(states=tuple(sorted(ACTIVE))),
        "failed": RunQuery(states=("failed",)),
        "of an agent": RunQuery(agent="claude"),
        "of a task": RunQuery(task="nightly"),
        "of an agent and a task": RunQuery(agent="claude", task="nightly"),
        "of a session": RunQuery(session=f"session-{one.run_id}"),
        "since": RunQuery(since=one.since),
        "of an agent without runs": RunQuery(agent="nobody"),
    }
    listed: dict[str, Read] = {f"list {name}": _build_listing(query) for name, query in queries.items()}
    return {
        **listed,
        "show": lambda store: _read_show(store, one.run_id, repository),
        "events of a run": lambda store: store.records.list_events(one.run_id),
    }


def _build_listing(query: RunQuery) -> Read:
    return lambda store: store.runs.list_page(query)


def _read_show(store: Store, run_id: str, repository: str) -> None:
    """Read what `jackline show` reads: the run by a prefix of its id, and all its records."""
    found = store.runs.find_matching(run_id[:16], repository)[0].id
    store.runs.get(found)
    parts = (
        store.records.list_attempts,
        store.records.list_turns,
        store.calls.list_all,
        store.calls.list_receipts,
        store.records.list_checks,
        store.records.list_notices,
    )
    for read in (*parts, store.records.get_sessions, store.calls.list_open):
        read(found)


def _build_turn(store: Store, read: Read) -> Callable[[], float]:
    def turn() -> float:
        begin = time.perf_counter()
        for _ in range(_REPEAT):
            read(store)
        return (time.perf_counter() - begin) / _REPEAT

    return turn


# --- through the command line


def _measure_commands(instances: list[Instance], repository: str, *, quick: bool) -> list[Line]:
    lines = []
    for words in (("list",), ("list", "--all-repos"), ("list", "--active"), ("show", "RUN")):
        contenders = [
            Contender(
                one.label,
                command.build_turn(_build_command(words, one.run_id), repository, command.build_environment(one.home)),
            )
            for one in instances
        ]
        samples = interleave(contenders, rounds=4 if quick else 20, warm_up=2)
        lines.append(_build_line(f"jackline {' '.join(words)}", samples))
    return lines


def _build_command(words: tuple[str, ...], run_id: str) -> tuple[str, ...]:
    return (command.JACKLINE, *(run_id if word == "RUN" else word for word in words))


def _build_line(name: str, samples: Mapping[str, Sample]) -> Line:
    small, big = samples.values()
    return compare(Sample(name, big.seconds), small, GOAL)
