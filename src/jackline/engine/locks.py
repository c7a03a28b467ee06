"""The lock by which processes of one host see whether a supervisor lives: a flock that only its death releases.

The lock is taken before the run is claimed and handed to the warden as well; so it is free only when the supervisor is
dead and its warden has finished killing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time


def path(folder: str, owner: str) -> str:
    """Where the lock of an owner lies."""
    return os.path.join(folder, f"owner-{owner}.lock")


def hold(folder: str, owner: str) -> int:
    """Take the lock of a new owner; the descriptor keeps it."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(path(folder, owner), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        descriptor = os.open(path(folder, owner), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_dead(folder: str, owner: str, seconds: float) -> bool:
    """Give a warden that is still killing a bounded time to finish."""
    until = time.monotonic() + seconds
    while not is_dead(folder, owner):
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True
