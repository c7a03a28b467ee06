"""Decides whether the supervisor of an attempt is dead, from its lock and its pid. It takes and changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.states import RunState
from jackline.engine import owner_lock

if TYPE_CHECKING:
    from jackline.domain.records import Attempt, Run
    from jackline.engine.settings import EngineSettings
    from jackline.store.store import Store

_WARDEN_TIME_S = 10.0


def find_dead_attempt(store: Store, run: Run, settings: EngineSettings) -> int | None:
    """The token of the attempt that holds the run, if this host can tell that all its processes are dead."""
    if run.status.state is not RunState.RUNNING:
        return None
    holder = next((one for one in store.records.list_attempts(run.id) if one.token == run.status.attempt), None)
    if holder is None or holder.host != settings.host:
        return None
    return holder.token if _is_dead(holder, settings.build_folder(run.id)) else None


def is_supervisor_gone(holder: Attempt, host: str, folder: str) -> bool:
    """Whether the supervisor is dead, as far as this host can tell at once; its warden may still be killing processes.

    It never says so of an attempt that `find_dead_attempt` would not find dead a moment later.
    """
    if holder.host != host:
        return False
    if owner_lock.is_owner_dead(folder, holder.owner):
        return True
    # The lock is held, or another machine has it. Only a warden that is seen here will release it: a pid that is not
    # seen may belong to another container.
    return (
        holder.boot == clock.boot_id()
        and not is_process_alive(holder.pid)
        and holder.warden_pid is not None
        and is_process_alive(holder.warden_pid)
        and os.path.exists(owner_lock.build_lock_path(folder, holder.owner))
    )


def _is_dead(holder: Attempt, folder: str) -> bool:
    """Check the lock first, which a reboot frees, too: two machines may have the same name but not the same boot id."""
    if owner_lock.is_owner_dead(folder, holder.owner):
        return True
    if holder.boot != clock.boot_id() or is_process_alive(holder.pid):
        return False
    # The supervisor is dead but its lock is held: its warden is still killing processes.
    return owner_lock.wait_until_dead(folder, holder.owner, _WARDEN_TIME_S)


def is_process_alive(pid: int) -> bool:
    """Whether a process has this pid; one that has ended and was not yet collected by its parent is dead."""
    from jackline.engine.warden.process_tree import read_process

    if (process := read_process(pid)) is not None:  # without /proc there is none
        return not process.dead
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True
