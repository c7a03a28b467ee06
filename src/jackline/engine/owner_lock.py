"""The locks that show which processes of a host are alive: flocks that the death of their holder releases.

An owner's lock is taken before the run is claimed and inherited by the warden, so it is free only when the supervisor
is dead and its warden has finished killing. The waiters' lock is shared by the processes that wait for an answer to
continue the run themselves.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import TYPE_CHECKING

from jackline.errors import disk_error
from jackline.files import is_unlocked, lock_descriptor, open_lock, share_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAITERS = "waiters.lock"
_MOST_LOOKS = 5  # another process that looks holds the lock for an instant


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
    """Wait until the owner is dead: its warden may still be killing processes. False after `seconds`.

    A process that takes over removes the lock file: then there is nothing to wait for.
    """
    until = time.monotonic() + seconds
    while not is_owner_dead(folder, owner):
        if time.monotonic() >= until or not os.path.exists(build_lock_path(folder, owner)):
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def hold_waiter(folder: str) -> Iterator[None]:
    """While the block lasts, others on this host see that a process will continue the run once it is answered.

    When the block has ended, read the run again: an answer that came before left it to this process.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = open_lock(os.path.join(folder, _WAITERS))
    except OSError as error:
        raise disk_error(error, folder) from error
    try:
        share_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def has_waiter(folder: str) -> bool:
    """Whether a living process on this host waits to continue the run; ask after the answer is written."""
    try:
        descriptor = os.open(os.path.join(folder, _WAITERS), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        for _ in range(_MOST_LOOKS):
            if lock_descriptor(descriptor):
                return False
            time.sleep(0.01)
        return True
    finally:
        os.close(descriptor)
