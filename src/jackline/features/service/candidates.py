"""Which runs a service may take now, in which order. It reads only.

A queued run without a place in the queue belongs to the process that created it, and so does an answered run for which
a living process waits. Runs that a person paused are never taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.wakeups import list_due
from jackline.engine.dead_attempts import is_supervisor_gone
from jackline.features.service.service_store import ServiceStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.store.models import QueueEntry
    from jackline.store.store import Store

_MOST = 10_000


def list_candidates(home: Home, at: int) -> dict[str, QueueEntry | None]:
    """The ids of the runs that may be taken, best first; those of the queue with their entries."""
    due = (one.run_id for one in list_due(home, at))
    queued = {entry.run_id: entry for entry in home.store().queue.list_startable(at, _MOST)}
    return dict.fromkeys((*_find_lost(home), *due)) | queued


class BatchPlaces:
    """The free places of the batches: a run in another worktree gets the place of one whose worktree is busy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free: dict[str, int] = {}

    def has_place(self, entry: QueueEntry | None) -> bool:
        """Whether a run with this entry may start; the store is asked once for each batch."""
        if entry is None or not entry.batch_slots:
            return True
        if entry.batch not in self._free:
            self._free[entry.batch] = entry.batch_slots - self._store.queue.count_batch_places(entry.batch)
        return self._free[entry.batch] > 0

    def take(self, entry: QueueEntry | None) -> None:
        """Note that a run with this entry starts."""
        if entry is not None and entry.batch in self._free:
            self._free[entry.batch] -= 1


def _find_lost(home: Home) -> Iterator[str]:
    """Running runs whose process was on this host and is gone, or no longer renews its lease.

    A database in a file belongs to one host. Its name may have changed since; then only the lease can tell.
    """
    is_shared, host = "://" in home.database, clock.host_name()
    running = ServiceStore(home.store()).list_running()
    for attempt, is_lease_over in home.store().records.list_holders(running):
        if (is_shared and attempt.host != host) or attempt.ended_at is not None:
            continue
        if is_lease_over or is_supervisor_gone(attempt, host, home.folder(attempt.run_id)):
            yield attempt.run_id
