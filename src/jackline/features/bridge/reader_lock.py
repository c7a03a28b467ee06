"""Lets one process at a time have messages that it has not acknowledged; its death releases them for the next one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jackline.errors import Refused, disk_error
from jackline.files import lock_descriptor, make_private_folder, open_lock

_guard = threading.Lock()  # tools of one process run in parallel threads
_held: dict[str, int] = {}  # descriptors by path


class ReaderLock:
    """The lock of a reader's messages, held by this process."""

    def __init__(self, path: str) -> None:
        self._path = path

    def release(self) -> None:
        """Let other processes of the same name read: everything is acknowledged."""
        os.close(_held.pop(self._path))


@contextmanager
def hold_reader(run_folder: str, name: str) -> Iterator[ReaderLock]:
    """Take the lock of a reader, or keep it; Refused if another process has messages that it did not acknowledge."""
    path = os.path.join(run_folder, "bridge", f"{name}.lock")
    with _guard:
        is_new = path not in _held
        if is_new:
            _held[path] = _take(path, name)
        lock = ReaderLock(path)
        try:
            yield lock
        except BaseException:
            if is_new:
                lock.release()
            raise


def _take(path: str, name: str) -> int:
    make_private_folder(os.path.dirname(path))
    try:
        descriptor = open_lock(path)
    except OSError as error:
        raise disk_error(error, path) from error
    if lock_descriptor(descriptor):
        return descriptor
    os.close(descriptor)
    raise Refused(f"another process reads the messages to {name} and has not acknowledged them: end it, or wait for it")
