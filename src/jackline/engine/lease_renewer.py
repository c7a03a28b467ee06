"""Renews the lease of an attempt, extends the warden's deadline with it, and notices a cancel request."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.engine import threads
from jackline.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.records import Lease
    from jackline.store.store import Store

_CANCEL_POLL_S = 0.5


class LeaseRenewer:
    """Renews in a thread after each third of the lease; the warden's deadline is two thirds after the last renewal."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        lease_ms: int,
        *,
        on_renewed: Callable[[int], None],
        on_cancel: Callable[[], None],
        on_lost: Callable[[BaseException], None],
    ) -> None:
        """`deadline` counts from now, just after the claim; nothing starts yet."""
        self._store, self._lease, self._lease_ms = store, lease, lease_ms
        self._on_renewed, self._on_cancel, self._on_lost = on_renewed, on_cancel, on_lost
        self._accounted = boot_ms()
        self._renewed = self._accounted
        self._stop = threading.Event()
        self._renew_lock = threading.Lock()  # an older renewal must not shorten the deadline of a newer one
        self._thread: threading.Thread | None = None

    @property
    def deadline(self) -> int:
        """When the warden kills everything, on the boot clock."""
        return self._renewed + self._lease_ms * 2 // 3

    def start(self) -> None:
        """Start the thread."""
        self._thread = threads.start_thread("lease renewer", self._run, self._on_lost)

    def stop(self) -> None:
        """End the thread; the lease itself stays until the last write."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def renew(self) -> None:
        """Renew once. The time before the write counts, so that the warden never outlives the lease."""
        with self._renew_lock:
            before = boot_ms()
            if self._store.leases.renew(self._lease, self._lease_ms, before - self._accounted):
                self._on_cancel()
            self._accounted = self._renewed = before
            self._on_renewed(self.deadline)

    def _run(self) -> None:
        pause = min(_CANCEL_POLL_S, self._lease_ms / 6000)  # a short lease needs shorter pauses
        while not self._stop.wait(pause):
            try:
                if boot_ms() - self._renewed >= self._lease_ms // 3:
                    self.renew()
                elif self._store.leases.is_cancel_requested(self._lease.run_id):
                    self._on_cancel()
            except StoreUnavailable:
                if boot_ms() >= self.deadline:
                    raise
