"""The inside of a contender's process: prepare it, then work a turn for each line, and say how long it took.

`python -m benchmarks.host MODULE VARIANT FOLDER REPEAT`; MODULE is one of benchmarks.contenders.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable

from benchmarks.contenders import Prepared

_LOG_BYTES = 1_000 * 4_096  # the pages of SQLite's default wal_autocheckpoint
_MOST_BEFORE = 20_000


def main(module: str, variant: str, folder: str, repeat: int) -> None:
    # Frameworks print: what they say must not be taken for a measurement.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    prepare: Callable[[str, str], Prepared] = importlib.import_module(f"benchmarks.contenders.{module}").prepare
    prepared = prepare(folder, variant)
    _come_round(prepared, folder)
    print(prepared.note, file=answers)
    for _ in sys.stdin:
        print(_timed(prepared.work, repeat) / prepared.units, file=answers)
    prepared.close()


def _come_round(prepared: Prepared, folder: str) -> None:
    """Work until the write-ahead log has reached the size at which it is overwritten from its start.

    While the log grows each sync also has to write down its new length, which costs about half as much again. Who
    writes little stays in that phase for long: without this the yardstick is measured in it and the others are not.
    """
    for _ in range(_MOST_BEFORE // prepared.units):
        prepared.work()
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith("-wal")]
        if not sizes or min(sizes) >= _LOG_BYTES:
            return
    raise RuntimeError(f"the log in {folder} did not come round in {_MOST_BEFORE} units of work")


def _timed(work: Callable[[], object], repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - begin) / repeat


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
