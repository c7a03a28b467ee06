"""Files that are written whole or not at all, and locks between processes. Nothing here knows what the files mean.

A file is written beside its place, synced, and renamed into it: a reader never sees half of one, and a crash leaves
the old one.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_SUFFIX = ".tmp"
_ABANDONED_S = 3600.0
_BUFFER = 1 << 16
_WINDOWS_END = b"\r\n"


class NotWritten(JacklineError):
    """{detail} cannot be written ({why}): mend that, then `jackline export`; the run is safe"""  # noqa: D400 - the message


@contextmanager
def report_path(path: str) -> Iterator[None]:
    """Turn an OSError into a NotWritten that names the file."""
    try:
        yield
    except OSError as error:
        raise NotWritten(path, why=error.strerror or error) from error


# locks


def lock_descriptor(descriptor: int, *, wait: bool = False) -> bool:
    """Take an exclusive flock; False if another open file has it. Closing every copy of the descriptor releases it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock_descriptor(descriptor: int) -> None:
    """Release the flock, and keep the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def open_lock(path: str) -> int:
    """Open a lock file, and create it if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def is_unlocked(path: str) -> bool:
    """True if no process holds the lock of a file that exists."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return lock_descriptor(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def lock_folder(path: str) -> Iterator[None]:
    """Hold the lock of a folder; waits for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_descriptor(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


# files that are replaced


@contextmanager
def replace_file(path: str, *, durable: bool = True) -> Iterator[int]:
    """Give a descriptor to write to; when the block ends without an error, the new file replaces `path`.

    A file that is not durable is still whole, but a loss of power may bring back an older one.
    """
    beside = _beside(path)
    with report_path(path):
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                yield descriptor
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _rename(beside, path, durable=durable)
        finally:
            _unlink(beside)


def write_file(path: str, data: bytes) -> None:
    """Make `data` the whole content of the file."""
    write_pieces(path, (data,))


def write_volatile(path: str, data: bytes) -> None:
    """Write a file that is written again with every change, and need not wait for the disk."""
    with replace_file(path, durable=False) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)


def write_pieces(path: str, pieces: Iterable[bytes]) -> None:
    """Make the pieces the content of the file, with no more than one of them and a small buffer in memory."""
    with replace_file(path) as descriptor, os.fdopen(descriptor, "wb", _BUFFER, closefd=False) as file:
        file.writelines(pieces)


def link_file(source: str, path: str) -> bool:
    """Make `path` a second name of the file `source`; False where the file system cannot."""
    beside = _beside(path)
    try:
        os.link(source, beside, follow_symlinks=False)
    except OSError:
        return False
    with report_path(path):
        try:
            _rename(beside, path)
        finally:
            _unlink(beside)  # a rename between two names of one file does nothing, and leaves both
    return True


def write_symlink(target: str, path: str) -> None:
    """Make `path` a symbolic link to `target`."""
    with report_path(path):
        if os.path.islink(path) and os.readlink(path) == target:
            return
        beside = _beside(path)
        try:
            os.symlink(target, beside)
            _rename(beside, path)
        finally:
            _unlink(beside)


def remove_file(path: str) -> None:
    """Remove the file, if it is there."""
    with report_path(path):
        _unlink(path)


# files that are created once, and lines that are added once


def create_file(path: str, text: str, mode: int = 0o666) -> bool:
    """Write a new file; False if the name is taken, even by a dangling link. It never replaces anything."""
    if os.path.lexists(path):
        return False
    beside = _beside(path)
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return _link_new(beside, path)
    except OSError as error:
        error.filename = path  # the caller does not know the name beside it
        raise
    finally:
        _unlink(beside)


def append_missing(path: str, find_missing: Callable[[bytes], bytes]) -> bool:
    """Append what `find_missing` says that the text of the file lacks; True if that is anything.

    `find_missing` reads and returns lines that end with a newline; in the file they end as its first line does.
    """
    with open(path, "ab+", opener=_open_regular) as file:
        lock_descriptor(file.fileno(), wait=True)  # of two at once only one adds it
        file.seek(0)
        text = file.read()
        missing = find_missing(text.replace(_WINDOWS_END, b"\n"))
        has_windows_ends = text.partition(b"\n")[0].endswith(b"\r")
        file.write(missing.replace(b"\n", _WINDOWS_END) if has_windows_ends else missing)
    return bool(missing)


# folders


def make_private_folder(path: str) -> None:
    """Make the folder and its missing parents, for their owner only."""
    with report_path(path):
        _make_folder(path)


def sweep_folder(folder: str) -> None:
    """Remove what a killed writer left behind; a recent file may belong to a writer that is still at work."""
    with report_path(folder):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(".") and name.endswith(_SUFFIX) and _age_s(path) > _ABANDONED_S:
                _unlink(path)


def _make_folder(path: str) -> None:
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        _make_folder(parent)
    try:
        os.mkdir(path, FOLDER_MODE)
    except FileExistsError:  # another process was quicker; but a file in its place is an error
        if not os.path.isdir(path):
            raise


def _beside(path: str) -> str:
    """Name a file in the same folder, because a rename stays in one file system; random, for concurrent writers."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(6).hex()}{_SUFFIX}")


def _rename(source: str, path: str, *, durable: bool = True) -> None:
    os.replace(source, path)
    if not durable:
        return
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # else the rename itself may be lost with the power
    finally:
        os.close(descriptor)


def _link_new(beside: str, path: str) -> bool:
    """Give a file its name; unlike a rename, a second name never replaces a file that appeared meanwhile."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without second names: look once more
        if os.path.lexists(path):
            return False
        os.rename(beside, path)
    return True


def _open_regular(path: str, flags: int) -> int:
    """Follow no link, and do not wait for the reader of a pipe."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is not a regular file")
    return descriptor


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _age_s(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0
