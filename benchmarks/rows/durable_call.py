"""The cost of recording a call before and after it: jackline, the bare minimum, and two others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.measure import Contender, interleave
from benchmarks.process import ContenderProcess
from benchmarks.report import Table, compare

KEY = "durable-call"
_YARDSTICK = "two raw commits"
_PLAIN = "jackline: a plain call (intent, outcome)"
_EFFECT = "jackline: an effect (intent, outcome, receipt)"
# name, module, variant, units of work in one turn
_CONTENDERS = (
    (_YARDSTICK, "raw", "FULL", 10),
    (_PLAIN, "jackline_store", "read", 10),
    ("its bare statements, on the same tables", "bare", "read", 10),
    (_EFFECT, "jackline_store", "effect", 10),
    ("the effect's bare statements, on the same tables", "bare", "effect", 10),
    ("jackline: the effect through the gate's ledger", "jackline_store", "ledger", 10),
    ("LangGraph SqliteSaver: two checkpoints, as shipped", "langgraph_saver", "shipped", 10),
    ("LangGraph SqliteSaver: two checkpoints, synchronous=FULL", "langgraph_saver", "FULL", 10),
    ("DBOS: workflow of one step, as shipped", "dbos_step", "shipped-one", 5),
    ("DBOS: workflow of one step, WAL", "dbos_step", "wal-one", 5),
    ("DBOS: a step among fifty, as shipped", "dbos_step", "shipped-many", 1),
    ("DBOS: a step among fifty, WAL", "dbos_step", "wal-many", 1),
)
GOALS = {_PLAIN: 1.0, _EFFECT: 2.0}  # a plain call does not wait for the disk, an effect waits twice


def measure(folder: str, *, quick: bool) -> Table:
    with ExitStack() as stack:
        workers = {name: stack.enter_context(_start_worker(folder, name)) for name, *_ in _CONTENDERS}
        contenders = [Contender(name, worker.turn) for name, worker in workers.items()]
        samples = interleave(contenders, rounds=5 if quick else 40, warm_up=1 if quick else 5)
        notes = _build_notes(workers)
    raw = samples.pop(_YARDSTICK)
    lines = tuple(compare(sample, raw, GOALS.get(sample.name)) for sample in samples.values())
    return Table(KEY, "A durable call against two raw SQLite commits", lines, notes)


def _build_notes(workers: Mapping[str, ContenderProcess]) -> tuple[str, ...]:
    """The effective settings, each with the contenders that had them."""
    settings = dict.fromkeys(worker.note for worker in workers.values())
    return tuple(
        f"{setting}: {'; '.join(name for name, worker in workers.items() if worker.note == setting)}"
        for setting in settings
    )


def _start_worker(folder: str, wanted: str) -> ContenderProcess:
    number, (_, module, variant, repeat) = next(
        (number, one) for number, one in enumerate(_CONTENDERS) if one[0] == wanted
    )
    own = os.path.join(folder, f"contender-{number}")
    os.mkdir(own)
    return ContenderProcess(module, variant, own, repeat)
