"""The gate file: a lock on which the writers of one SQLite database queue. It knows nothing of SQL.

SQLite's own busy handler polls, and starves writers (measured p99 1283 ms against 4.7 ms). `flock(2)` is a
queue in the kernel, and belongs to the open file, so that it excludes threads with descriptors of their own as
well; `lockf` belongs to the process, and would not.
"""

from __future__ import annotations

import os
import threading

from jackline.errors import StoreReadOnly, StoreUnavailable
from jackline.files import lock_descriptor, open_lock, unlock_descriptor

PATIENCE_SECONDS = 30.0


class GateFile:
    """One descriptor on the gate file of one database."""

    def __init__(self, path: str, patience: float = PATIENCE_SECONDS) -> None:
        self.path = path
        self._patience = patience
        self._descriptor: int | None = None

    def enter(self) -> None:
        """Wait for the lock; StoreUnavailable if its holder does not release it."""
        descriptor = self._open()
        if not lock_descriptor(descriptor):
            self._wait(descriptor)

    def leave(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            unlock_descriptor(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = open_lock(self.path)
            except OSError as error:
                raise StoreReadOnly(f"{self.path}: {error.strerror}") from error
        return self._descriptor

    def _wait(self, descriptor: int) -> None:
        """Wait in the kernel's queue, in another thread: flock has no timeout, and its holder may be stopped."""
        waiter = _Waiter(descriptor)
        waiter.start()
        waiter.join(self._patience)
        if waiter.is_alive() and waiter.give_up():
            self._descriptor = None  # the waiter closes it when it gets the lock
            message = f"{self.path} was held for {self._patience:g} s by a process that may be stopped"
            raise StoreUnavailable(message)


class _Waiter(threading.Thread):
    """Waits for the lock once; if the caller has given up meanwhile, releases it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(name="jackline-gate-file", daemon=True)
        self._descriptor = descriptor
        self._decision = threading.Lock()
        self._entered = False
        self._given_up = False

    def run(self) -> None:
        lock_descriptor(self._descriptor, wait=True)
        with self._decision:
            self._entered = True
            if self._given_up:
                os.close(self._descriptor)

    def give_up(self) -> bool:
        """False if the lock was acquired just now."""
        with self._decision:
            self._given_up = not self._entered
            return self._given_up
