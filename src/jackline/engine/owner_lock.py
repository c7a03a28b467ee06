"""The lock that shows the processes of a host whether a supervisor lives: a flock that only its death releases.

It is taken before the run is claimed and inherited by the warden, so it is free only when the supervisor is dead and
its warden has finished killing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time

from jackline.files import is_unlocked, lock_descriptor, open_lock


def build_lock_path(folder: str, owner: str) -> str:
    """The lock file of an owner."""
    return os.path.join(folder, f"owner-{owner}.lock")


def acquire_lock(folder: str, owner: str) -> int:
    """Take the lock of a new owner; the returned descriptor holds it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = open_lock(build_lock_path(folder, owner))
    if not lock_descriptor(descriptor):
        os.close(descriptor)
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), build_lock_path(folder, owner))
    return descriptor


def release_lock(folder: str, owner: str, descriptor: int) -> None:
    """Release the lock after a clean end."""
    os.close(descriptor)
    remove_lock(folder, owner)


def remove_lock(folder: str, owner: str) -> None:
    """Remove the lock file of a dead owner."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(build_lock_path(folder, owner))


def is_owner_dead(folder: str, owner: str) -> bool:
    """Whether the owner's lock exists here and is free; without a lock file that can be read it is unknown."""
    try:
        return is_unlocked(build_lock_path(folder, owner))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def wait_until_dead(folder: str, owner: str, seconds: float) -> bool:
    """Wait until the owner is dead: its warden may still be killing processes. False after `seconds`."""
    until = time.monotonic() + seconds
    while not is_owner_dead(folder, owner):
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True
