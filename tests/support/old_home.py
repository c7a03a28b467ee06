"""The fixture homes of an older jackline, unpacked at the one path that their rows name; one test at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fixtures.make_old_home import DUMP, archive_of, place_of


@contextmanager
def unpacked(commit: str, store: str) -> Iterator[Path]:
    """The folder of the fixture; it is gone afterwards, and so is what a killed test may have left there."""
    place = place_of(commit, store)
    with _locked(f"{place}.lock"):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        try:
            with tarfile.open(archive_of(commit, store)) as archive:
                archive.extractall(place, filter="tar")
            yield place
        finally:
            shutil.rmtree(place)


def restore(url: str, place: Path) -> None:
    """The dump of the fixture into an empty database."""
    import psycopg

    lines = (place / DUMP).read_text(encoding="utf-8").splitlines(keepends=True)
    # Lines with a backslash are for psql.
    dump = "".join(line for line in lines if not line.startswith("\\"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(dump.encode())


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold a lock file that every session of this machine knows, and leave none behind."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            is_ours = os.stat(path).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            is_ours = False
        if is_ours:
            break
        os.close(descriptor)  # whoever held it has deleted it: the lock is now another file
    try:
        yield
    finally:
        os.unlink(path)
        os.close(descriptor)
