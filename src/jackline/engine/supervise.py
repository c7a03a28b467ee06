"""Runs one attempt: claim the run, work on it, release it. The entry point of the engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from jackline import clock
from jackline.diagnostic_log import LOG
from jackline.domain.records import Owner
from jackline.domain.run_inputs import StopReason
from jackline.engine import owner_lock
from jackline.engine.attempt import run_attempt
from jackline.engine.dead_attempts import find_dead_attempt
from jackline.engine.keep_awake import keep_awake
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

_STOP_DETAILS = {StopReason.INTERRUPT: "interrupted", StopReason.SHUTDOWN: "its process was shut down"}


class Interrupt(Protocol):
    """Interrupts the current work, from any thread or signal handler."""

    def __call__(self, why: StopReason = StopReason.INTERRUPT, /) -> None:
        """Let the run park: paused until a person continues it, or after SHUTDOWN due at once for the next service."""
        ...


def supervise(
    store: Store,
    run: Run,
    agents: Callable[[str], Adapter],
    settings: EngineSettings,
    on_start: Callable[[Interrupt], None] = lambda _interrupt: None,
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
            at, from_queue = clock.wall_ms(), settings.from_queue
            lease, claimed = store.leases.claim(
                run.id, owner, settings.lease_ms, at, dead, run.status, from_queue=from_queue
            )
    except JacklineError:
        owner_lock.release_lock(folder, owner.name, lock)
        raise
    if run.owner:
        owner_lock.remove_lock(folder, run.owner)
    LOG.info(f"run {run.id}: attempt {lease.token} begins")
    runtime = LiveRuntime(store, lease, claimed, agents, settings, lock)
    try:
        on_start(_build_interrupt(runtime))
        with keep_awake(os.environ, wanted=settings.keep_awake):
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


def _build_interrupt(runtime: LiveRuntime) -> Interrupt:
    def interrupt(why: StopReason = StopReason.INTERRUPT) -> None:
        runtime.stop(why, _STOP_DETAILS[why])

    return interrupt
