"""Runs one attempt: claim the run, work on it, release it. The entry point of the engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.diagnostic_log import LOG
from jackline.domain.records import Owner
from jackline.domain.run_inputs import StopReason
from jackline.engine import owner_lock
from jackline.engine.attempt import run_attempt
from jackline.engine.dead_attempts import find_dead_attempt
from jackline.engine.runtime import LiveRuntime
from jackline.engine.settings import new_id
from jackline.engine.workspace_guard import guard_workspace
from jackline.errors import JacklineError, disk_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Run
    from jackline.engine.settings import EngineSettings
    from jackline.store.store import Store


def supervise(
    store: Store,
    run: Run,
    agents: Callable[[str], Adapter],
    settings: EngineSettings,
    on_start: Callable[[Callable[[], None]], None] = lambda _interrupt: None,
) -> Run:
    """Make one attempt at the run; `on_start` receives the function that interrupts it."""
    folder = settings.build_folder(run.id)
    owner = Owner(name=new_id(), host=settings.host, boot=clock.boot_id(), pid=os.getpid())
    try:
        lock = owner_lock.acquire_lock(folder, owner.name)
    except OSError as error:
        raise disk_error(error, folder) from error
    try:
        dead = find_dead_attempt(store, run, settings)
        with guard_workspace(store, run, settings.home, share=settings.share_workspace):
            lease, claimed = store.leases.claim(run.id, owner, settings.lease_ms, clock.wall_ms(), dead, run.status)
    except JacklineError:
        owner_lock.release_lock(folder, owner.name, lock)
        raise
    if run.owner:
        owner_lock.remove_lock(folder, run.owner)
    LOG.info(f"run {run.id}: attempt {lease.token} begins")
    runtime = LiveRuntime(store, lease, claimed, agents, settings, lock)
    try:
        on_start(lambda: runtime.stop(StopReason.INTERRUPT, "interrupted"))
        ended = run_attempt(store, lease, claimed, runtime)
    except BaseException as error:
        LOG.warning(f"run {run.id}: attempt {lease.token} breaks off: {error!r}")
        # The run is still ours in the store. The unlocked lock file stays: it shows the next process that we are dead.
        runtime.close()
        os.close(lock)
        raise
    runtime.close()
    owner_lock.release_lock(folder, owner.name, lock)
    status = ended.status
    LOG.info(f"run {run.id}: attempt {lease.token} ends: {status.state} {status.reason or status.failure or ''}")
    return ended
