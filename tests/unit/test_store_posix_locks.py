"""Two connections of one process to one SQLite file: POSIX locks belong to the process, and are easily lost."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from jackline.store.models import RunQuery
from jackline.store.open import open_store
from tests.support.stores import made

if TYPE_CHECKING:
    from pathlib import Path

LOOK = "import sys; from jackline.store.open import open_store; open_store(sys.argv[1], create=False).close()"


def test_a_second_connection_does_not_take_the_lock_of_the_first(tmp_path: Path) -> None:
    """Opening the file by hand and closing it would drop SQLite's lock; the next process would delete the log."""
    path = str(tmp_path / "state.sqlite")
    worker = open_store(path, create=True)
    made(worker, "run-1")
    watcher = open_store(path, create=False)
    subprocess.run([sys.executable, "-c", LOOK, path], check=True, timeout=30)
    assert os.path.exists(path + "-wal"), "another process took itself for the last one"
    made(worker, "run-2")
    watcher.close()
    subprocess.run([sys.executable, "-c", LOOK, path], check=True, timeout=30)
    made(worker, "run-3")
    other = open_store(path, create=False)
    assert [row.id for row in other.runs.list_page(RunQuery())] == ["run-3", "run-2", "run-1"]
    other.close()
    worker.close()
