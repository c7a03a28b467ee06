"""Lets only one run at a time work in a worktree of this host, unless a person shares it. It stores nothing.

Runs of other homes are not seen, except those in the same PostgreSQL database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.states import RunState
from jackline.engine.dead_attempts import is_process_alive, is_supervisor_gone
from jackline.errors import WorkspaceBusy
from jackline.files import lock_folder
from jackline.worktrees import find_run_worktree

if TYPE_CHECKING:
    from jackline.domain.records import Attempt, Run
    from jackline.domain.spec import Spec
    from jackline.store.models import Holder
    from jackline.store.store import Store

_RETRY_GRACE_MS = 5_000


@contextmanager
def guard_workspace(store: Store, run: Run, home: str, *, share: bool) -> Iterator[None]:
    """Refuse the run if another one works in its worktree; no process of this home can claim a run in the meantime."""
    with lock_claims(home, run.spec.worktree.path):
        if not (share or run.spec.share_workspace):
            refuse_busy_workspace(store, run.spec, home, but=run.id)
        yield


@contextmanager
def lock_claims(home: str, worktree: str = "") -> Iterator[None]:
    """Let no process of this home claim a run in the meantime; one of another home no run with a worktree beside this.

    Homes that share a database share its runs, but not the lock of a home. They do share the folder of all worktrees.
    """
    folder = os.path.join(home, "runs")
    os.makedirs(folder, mode=0o700, exist_ok=True)  # another home of the same database may have made the runs
    beside = os.path.dirname(os.path.dirname(worktree))
    with ExitStack() as locks:
        locks.enter_context(lock_folder(folder))
        if os.path.isdir(beside):  # else there is no worktree yet, and nothing to remove
            locks.enter_context(lock_folder(beside))
        yield


def list_busy_worktrees(store: Store, home: str) -> dict[str, str]:
    """The worktrees of this host in which a live run works, each with the id of the run."""
    busy = {}
    for holder in store.records.list_working():
        run = store.runs.get(holder.attempt.run_id) if is_of_this_boot(holder.attempt) else None
        if run is not None and _is_live(run, holder, home):
            busy[find_run_worktree(run.spec)] = run.id
    return busy


def refuse_busy_workspace(store: Store, spec: Spec, home: str, but: str = "") -> None:
    """WorkspaceBusy if a live run other than `but` works in the same worktree on this host."""
    root = find_run_worktree(spec)
    for holder in store.records.list_working():
        if holder.attempt.run_id == but or not is_of_this_boot(holder.attempt):
            continue
        run = store.runs.get(holder.attempt.run_id)
        if run is not None and find_run_worktree(run.spec) == root and _is_live(run, holder, home):
            raise WorkspaceBusy(run.id, number=run.number, folder=root)


def is_of_this_boot(attempt: Attempt) -> bool:
    """Whether the pids of the attempt can be compared with those of the processes that run now."""
    return attempt.host == clock.host_name() and attempt.boot == clock.boot_id()


def _is_live(run: Run, holder: Holder, home: str) -> bool:
    """Whether a process works on the run, or waits to try again in a moment. A lost run is not live."""
    attempt = holder.attempt
    if run.status.state is RunState.RUNNING:
        folder = os.path.join(home, "runs", run.id)
        return not holder.is_lease_over and not is_supervisor_gone(attempt, attempt.host, folder)
    return continues_itself(attempt, run.status.wake_at or 0)


def continues_itself(attempt: Attempt, wake_at: int) -> bool:
    """Whether the process of an attempt that ended with a retry is alive, and is about to make the next one."""
    is_soon = wake_at + _RETRY_GRACE_MS > clock.wall_ms()
    return is_soon and attempt.pid != os.getpid() and is_process_alive(attempt.pid)
