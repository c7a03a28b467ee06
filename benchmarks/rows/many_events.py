"""Whether writing and reading stay as fast as on the first day: a thousand events against a million."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks import command, many_events, postgres
from benchmarks.measure import Contender, Sample, interleave
from benchmarks.report import Line, Table, compare
from jackline import clock
from jackline.app import paths
from jackline.app.home import Home, open_home
from jackline.domain.events import Fact
from jackline.features.reports import dashboard
from jackline.store.models import TimelineQuery

KEY = "many-events"
GOAL = 1.5
_REPEAT = 10
_BEFORE = 400  # appends, until the write-ahead log is overwritten from its start: see docs/benchmarks.md
_TWO_HOURS_MS = 7_200_000

Work = Callable[[Home], object]


@dataclass(frozen=True, slots=True)
class Instance:
    """A home with its database open."""

    label: str
    folder: str
    home: Home


def measure(folder: str, *, quick: bool) -> Table:
    sizes = (1_000, 100_000 if quick else 1_000_000)
    with _build_sqlite(folder, sizes) as instances:
        lines = [*_measure_in_process("", instances, quick=quick), *_measure_commands(instances, folder, quick=quick)]
        notes = [f"{one.label}: {_format_counts(one.home)}" for one in instances]
    with postgres.server(folder) as address:
        if address is None:
            notes.append(postgres.MISSING)
        else:
            with _build_postgres(folder, address, sizes) as instances:
                lines += _measure_in_process("PostgreSQL: ", instances, quick=quick)
    return Table(KEY, f"{sizes[1]:,} events against {sizes[0]:,}", tuple(lines), tuple(notes))


# --- the databases


@contextmanager
def _build_sqlite(folder: str, sizes: tuple[int, ...]) -> Iterator[list[Instance]]:
    with ExitStack() as stack:
        made = []
        for size in sizes:
            own = os.path.join(folder, f"home-{size}")
            os.mkdir(own)
            many_events.build_sqlite(paths.find_database(own, ""), size, _find_begin(size))
            made.append(Instance(f"{size:,} events", own, stack.enter_context(open_home(own, {}))))
        yield _check_and_warm_up(made)


@contextmanager
def _build_postgres(folder: str, address: str, sizes: tuple[int, ...]) -> Iterator[list[Instance]]:
    with ExitStack() as stack:
        made = []
        for size in sizes:
            own = os.path.join(folder, f"postgres-home-{size}")
            os.mkdir(own)
            schema = stack.enter_context(postgres.schema(address, f"bench_{os.getpid()}_{size}"))
            many_events.build_postgres(schema, size, _find_begin(size))
            home = stack.enter_context(open_home(own, {"JACKLINE_DATABASE": schema}))
            made.append(Instance(f"{size:,} events", own, home))
        yield _check_and_warm_up(made)


def _find_begin(size: int) -> int:
    """The time of the first event, so that the newest one is current."""
    return clock.wall_ms() - size * many_events.APART_MS


def _check_and_warm_up(instances: list[Instance]) -> list[Instance]:
    wrong = instances[0].home.store().verify.check_all()
    if wrong:
        raise ValueError(f"the sample database is not valid: {wrong[0]} (and {len(wrong) - 1} more)")
    for _ in range(_BEFORE):
        for one in instances:
            _append_event(one.home)
    return instances


def _format_counts(home: Home) -> str:
    counts = home.store().admin.get_status().counts
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)


# --- inside one process


def _measure_in_process(prefix: str, instances: list[Instance], *, quick: bool) -> list[Line]:
    rounds = 5 if quick else 30
    works: Mapping[str, Work] = {
        "append one event": _append_event,
        "append to a work item": lambda home: _append_event(home, "mail-0000001"),
        "tail 50": lambda home: home.store().journal.list_timeline(TimelineQuery()),
        "since two hours ago, 50": _read_since,
        "the dashboard": dashboard.read_dashboard,
    }
    lines = []
    for name, work in works.items():
        contenders = [Contender(one.label, _build_turn(one.home, work)) for one in instances]
        lines.append(_build_line(prefix + name, interleave(contenders, rounds, warm_up=2)))
    return lines


def _append_event(home: Home, item: str | None = None) -> None:
    home.store().journal.append(Fact("build.finished", {"build": 7, "result": "green"}), clock.wall_ms(), "ada", item)


def _read_since(home: Home) -> None:
    home.store().journal.list_timeline(TimelineQuery(since=clock.wall_ms() - _TWO_HOURS_MS, newest_first=False))


def _build_turn(home: Home, work: Work) -> Callable[[], float]:
    def turn() -> float:
        begin = time.perf_counter()
        for _ in range(_REPEAT):
            work(home)
        return (time.perf_counter() - begin) / _REPEAT

    return turn


# --- through the command line


def _measure_commands(instances: list[Instance], folder: str, *, quick: bool) -> list[Line]:
    lines = []
    for words in (("events", "append", "build.finished"), ("events", "tail", "-n", "50"), ("dashboard",)):
        contenders = [
            Contender(
                one.label, command.build_turn((command.JACKLINE, *words), folder, command.build_environment(one.folder))
            )
            for one in instances
        ]
        samples = interleave(contenders, rounds=4 if quick else 20, warm_up=2)
        lines.append(_build_line(f"jackline {' '.join(words)}", samples))
    return lines


def _build_line(name: str, samples: Mapping[str, Sample]) -> Line:
    small, big = samples.values()
    return compare(Sample(name, big.seconds), small, GOAL)
