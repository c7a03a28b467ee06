"""Lets only one run at a time work in a worktree of this host, unless a person shares it. It stores nothing.

Runs of other homes are not seen, except those in the same PostgreSQL database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.states import RunState
from jackline.engine.dead_attempts import is_process_alive, is_supervisor_gone
from jackline.errors import WorkspaceBusy
from jackline.files import lock_folder
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from jackline.domain.records import Run
    from jackline.store.models import Holder
    from jackline.store.store import Store

_RETRY_GRACE_MS = 5_000


@contextmanager
def guard_workspace(store: Store, run: Run, home: str, *, share: bool) -> Iterator[None]:
    """Refuse the run if another one works in its worktree; no process of this home can claim a run in the meantime."""
    if share or run.spec.share_workspace:
        yield
        return
    with lock_folder(os.path.join(home, "runs")):
        refuse_busy_workspace(store, run.spec.workspace, home, but=run.id)
        yield


def refuse_busy_workspace(store: Store, workspace: str, home: str, but: str = "") -> None:
    """WorkspaceBusy if a live run other than `but` works in the same worktree on this host."""
    root = find_worktree(workspace)
    for holder in store.records.list_working():
        if holder.attempt.run_id == but or not _is_of_this_boot(holder):
            continue
        run = store.runs.get(holder.attempt.run_id)
        if run is not None and find_worktree(run.spec.workspace) == root and _is_live(run, holder, home):
            raise WorkspaceBusy(run.id, number=run.number, folder=root)


def _is_of_this_boot(holder: Holder) -> bool:
    return holder.attempt.host == clock.host_name() and holder.attempt.boot == clock.boot_id()


def _is_live(run: Run, holder: Holder, home: str) -> bool:
    """Whether a process works on the run, or waits to try again in a moment. A lost run is not live."""
    attempt = holder.attempt
    if run.status.state is RunState.RUNNING:
        folder = os.path.join(home, "runs", run.id)
        return not holder.is_lease_over and not is_supervisor_gone(attempt, attempt.host, folder)
    is_soon = (run.status.wake_at or 0) + _RETRY_GRACE_MS > clock.wall_ms()
    return is_soon and attempt.pid != os.getpid() and is_process_alive(attempt.pid)
