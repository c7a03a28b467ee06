"""The gate file: writers of one SQLite database stand in line for it. It knows nothing of SQL.

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
        """Wait for the turn; StoreUnavailable if whoever has it does not move on."""
        descriptor = self._opened()
        if not lock_descriptor(descriptor):
            self._wait(descriptor)

    def leave(self) -> None:
        """Let the next one in."""
        if self._descriptor is not None:
            unlock_descriptor(self._descriptor)

    def close(self) -> None:
        """Give up the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _opened(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = open_lock(self.path)
            except OSError as error:
                raise StoreReadOnly(f"{self.path}: {error.strerror}") from error
        return self._descriptor

    def _wait(self, descriptor: int) -> None:
        """Wait in the kernel's queue, on another thread: flock has no time limit, and its holder may be frozen."""
        waiter = _Waiter(descriptor)
        waiter.start()
        waiter.join(self._patience)
        if waiter.is_alive() and waiter.give_up():
            self._descriptor = None  # the waiter closes it when its turn comes
            held = f"{self.path} was held for {self._patience:g} s by a process that may be stopped"
            raise StoreUnavailable(held)


class _Waiter(threading.Thread):
    """Waits for one turn; if nobody wants it any more when it comes, passes it on."""

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
        """False if the turn came just now."""
        with self._decision:
            self._given_up = not self._entered
            return self._given_up
