"""The process of a contender: prepares it, then runs one turn for each input line and prints the seconds.

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
_WARM_UP_LIMIT = 20_000


def main(module: str, variant: str, folder: str, repeat: int) -> None:
    # Frameworks print: their output must not be mistaken for a measurement.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    prepare: Callable[[str, str], Prepared] = importlib.import_module(f"benchmarks.contenders.{module}").prepare
    prepared = prepare(folder, variant)
    _fill_log(prepared, folder)
    print(prepared.note, file=answers)
    for _ in sys.stdin:
        print(_measure_turn(prepared.work, repeat) / prepared.units, file=answers)
    prepared.close()


def _fill_log(prepared: Prepared, folder: str) -> None:
    """Work until the write-ahead log has reached the size at which it is overwritten from its start.

    While the log grows, each sync also writes its new length, which costs about half as much again. A contender that
    writes little stays in that phase for long: without this, the yardstick would be measured in it and others not.
    """
    for _ in range(_WARM_UP_LIMIT // prepared.units):
        prepared.work()
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith("-wal")]
        if not sizes or min(sizes) >= _LOG_BYTES:
            return
    raise RuntimeError(f"the log in {folder} did not fill up in {_WARM_UP_LIMIT} units of work")


def _measure_turn(work: Callable[[], object], repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - begin) / repeat


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
