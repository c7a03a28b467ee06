"""Starts the warden of an attempt when it is first needed, and a new one if that was killed. It starts nothing else."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from jackline.engine import orphans
from jackline.engine.process import SpawnFailed, Warden, WardenLost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.records import Lease
    from jackline.engine.lease_renewer import LeaseRenewer
    from jackline.store.store import Store


class WardenHolder:
    """Holds the warden of one attempt, which kills everything at the deadline of the lease."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        renewer: LeaseRenewer,
        *,
        lock_fd: int,
        marker: Mapping[str, str],
        environ: Mapping[str, str],
    ) -> None:
        """Start nothing yet."""
        self._store, self._lease, self._renewer = store, lease, renewer
        self._lock_fd, self._marker, self._environ = lock_fd, marker, environ
        self._warden: Warden | None = None
        self._starting = threading.Lock()
        self.is_closed = False

    @property
    def has_started(self) -> bool:
        """Whether this attempt has had a warden."""
        return self._warden is not None

    def ready(self) -> Warden:
        """Return the living warden; SpawnFailed or WardenLost if there is none."""
        with self._starting:  # the threads of the gate and of the attempt ask for it: two must not start two
            if self.is_closed:
                raise WardenLost("the attempt is over")
            if self._warden is None or self._warden.exit_code is not None:  # a killed warden took its agents along
                return self._start()
            return self._warden

    def _start(self) -> Warden:
        if self._warden is not None:
            # It may have reached its deadline while the store could not be reached: a new one would end at once.
            self._renewer.renew()
        warden = self._warden = Warden.start(
            deadline_ms=self._renewer.deadline, lock_fd=self._lock_fd, marker=self._marker, environ=self._environ
        )
        started = orphans.read_start_ticks(warden.pid)
        self._store.leases.record_warden(self._lease, warden.pid, started or 0)
        return warden

    def ready_or_none(self) -> Warden | None:
        """Return the living warden; None if there is none."""
        try:
            return self.ready()
        except (SpawnFailed, WardenLost):
            return None

    def renew(self, deadline: int) -> None:
        """Move the deadline of the warden, if there is one."""
        if self._warden is not None:
            with contextlib.suppress(WardenLost):  # the job that waits for its child reports the loss
                self._warden.renew(deadline)

    def close(self) -> None:
        """End the warden and everything below it; none is started again."""
        self.is_closed = True
        with self._starting:
            if self._warden is not None:
                self._warden.close()
