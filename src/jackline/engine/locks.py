"""The lock by which processes of one host see whether a supervisor lives: a flock that only its death releases.

The lock is taken before the run is claimed and handed to the warden as well; so it is free only when the supervisor is
dead and its warden has finished killing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time

from jackline.files import is_unlocked, lock_descriptor, open_lock


def path(folder: str, owner: str) -> str:
    """Where the lock of an owner lies."""
    return os.path.join(folder, f"owner-{owner}.lock")


def hold(folder: str, owner: str) -> int:
    """Take the lock of a new owner; the descriptor keeps it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = open_lock(path(folder, owner))
    if not lock_descriptor(descriptor):
        os.close(descriptor)
        raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path(folder, owner))
    return descriptor


def release(folder: str, owner: str, descriptor: int) -> None:
    """Give the lock up after a clean end."""
    os.close(descriptor)
    forget(folder, owner)


def forget(folder: str, owner: str) -> None:
    """Remove the lock file of an owner that is gone."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path(folder, owner))


def is_dead(folder: str, owner: str) -> bool:
    """True only if the owner's lock exists here and nobody holds it; an owner without a lock is unknown, not dead."""
    try:
        return is_unlocked(path(folder, owner))
    except FileNotFoundError:
        return False


def wait_dead(folder: str, owner: str, seconds: float) -> bool:
    """Give a warden that is still killing a bounded time to finish."""
    until = time.monotonic() + seconds
    while not is_dead(folder, owner):
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True
