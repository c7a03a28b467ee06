"""How long a state command takes, against the bare start of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks import bulk, command
from benchmarks.measure import Contender, interleave
from benchmarks.report import Table, compare
from jackline import clock
from jackline.app import paths
from jackline.store.models import RunQuery
from jackline.store.open import open_store

KEY = "state-command"
GOAL = 6.0
_YARDSTICK = "python -c pass"
_RUNS = 20
_BEFORE = (("case", "start", "the export is slow"), *(("work", "enqueue", "--kind", "mail"),) * 40)
_LOOKING = {
    "jackline list": ("list",),
    "jackline list --json": ("list", "--json"),
    "jackline case status": ("case", "status"),
    "jackline dashboard": ("dashboard",),
}
# Each of these also rewrites the dashboard.
_WRITING = {
    "jackline case hypothesis add TEXT": ("case", "hypothesis", "add", "the disk is slow"),
    "jackline work enqueue": ("work", "enqueue", "--kind", "mail", "--payload", '{"to": "ada"}'),
    "jackline work next": ("work", "next"),
    "jackline events append TYPE": ("events", "append", "build.finished"),
}


def measure(folder: str, *, quick: bool) -> Table:
    home, repository = os.path.join(folder, "home"), os.path.join(folder, "repository")
    os.mkdir(home)
    os.mkdir(repository)
    database = paths.find_database(home, "")
    bulk.build(database, (repository,), _RUNS, clock.wall_ms() - 86_400_000)
    store = open_store(database, create=False)
    newest = store.runs.list_page(RunQuery(limit=1))[0].id
    store.close()
    for words in _BEFORE:
        _build_turn(words, repository, home)()
    commands = {**_LOOKING, "jackline show RUN": ("show", newest), **_WRITING}
    contenders = [
        Contender(_YARDSTICK, command.build_turn(command.PYTHON_PASS, repository, command.build_environment(home))),
        *(Contender(name, _build_turn(words, repository, home)) for name, words in commands.items()),
    ]
    samples = interleave(contenders, rounds=5 if quick else 30, warm_up=2)
    bare = samples.pop(_YARDSTICK)
    lines = tuple(compare(sample, bare, GOAL) for sample in samples.values())
    return Table(KEY, f"A state command ({_RUNS} runs, SQLite) against the start of Python", lines)


def _build_turn(words: tuple[str, ...], repository: str, home: str) -> Callable[[], float]:
    return command.build_turn((command.JACKLINE, *words), repository, command.build_environment(home))
