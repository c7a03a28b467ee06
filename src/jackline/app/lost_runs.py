"""Finds lost runs: stored as running, but without a process that works on them. It is derived, never stored.

A run is lost when its lease is over by the store's clock, or when its process is gone on this host. On another host
only the lease can tell. Looking takes one read for any number of runs, waits for nothing, and needs no right to write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import RunState
from jackline.store.models import RunQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.app.home import Home
    from jackline.store.models import RunSummary

_PAGE = 500


def find_lost(home: Home, running: Iterable[str]) -> dict[str, str]:
    """The lost ones of these running runs, by id, each with the reason in words."""
    ids = list(running)
    if not ids:
        return {}
    from jackline.clock import boot_id, host_name
    from jackline.engine.dead_attempts import is_process_alive, is_supervisor_gone

    found, host = {}, host_name()
    for attempt, is_lease_over in home.store().records.list_holders(ids):
        if attempt.ended_at is not None:  # it ended since the runs were listed
            continue
        if is_supervisor_gone(attempt, host, home.folder(attempt.run_id)):
            # A service goes on after it has lost a run, such as on a full disk.
            is_left = attempt.boot == boot_id() and is_process_alive(attempt.pid)
            found[attempt.run_id] = f"its process (pid {attempt.pid}) {'has left it' if is_left else 'is gone'}"
        elif is_lease_over:
            found[attempt.run_id] = f"its process (pid {attempt.pid} on {attempt.host}) no longer renews its lease"
    return found


def list_lost(home: Home, query: RunQuery) -> list[RunSummary]:
    """The lost runs that the query matches, newest first; its states are ignored."""
    found: list[RunSummary] = []
    page_query = query._replace(states=(str(RunState.RUNNING),), limit=_PAGE)
    while len(found) < query.limit and (page := home.list_runs(page_query)):
        lost = find_lost(home, [row.id for row in page])
        found += [row for row in page if row.id in lost]
        page_query = page_query._replace(before=(page[-1].created_at, page[-1].id))
    return found[: query.limit]
