"""How long a person waits for the state of things: commands against the bare start of the interpreter."""

from __future__ import annotations

import os

from benchmarks import bulk, command
from benchmarks.measure import Contender, interleave
from benchmarks.report import Table, compare
from jackline import clock
from jackline.app import places
from jackline.store.contract import RunQuery
from jackline.store.open import open_store

KEY = "state-command"
GOAL = 6.0
_YARDSTICK = "python -c pass"
_RUNS = 20


def measure(folder: str, *, quick: bool) -> Table:
    home, repository = os.path.join(folder, "home"), os.path.join(folder, "repository")
    os.mkdir(home)
    os.mkdir(repository)
    database = places.database(home, "")
    bulk.build(database, (repository,), _RUNS, clock.wall_ms() - 86_400_000)
    store = open_store(database, create=False)
    newest = store.list_runs(RunQuery(limit=1))[0].id
    store.close()
    contenders = [
        Contender(name, command.turn(words, repository, command.environment(home)))
        for name, words in {
            _YARDSTICK: command.PYTHON_PASS,
            "jackline list": (command.JACKLINE, "list"),
            "jackline list --json": (command.JACKLINE, "list", "--json"),
            "jackline show RUN": (command.JACKLINE, "show", newest),
        }.items()
    ]
    samples = interleave(contenders, rounds=5 if quick else 30, warm_up=2)
    bare = samples.pop(_YARDSTICK)
    lines = tuple(compare(sample, bare, GOAL) for sample in samples.values())
    return Table(KEY, f"A state command ({_RUNS} runs, SQLite) against the start of Python", lines)
