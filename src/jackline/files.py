"""Atomic writes of files, and locks between processes. It knows nothing about the content of the files.

A file is written under a temporary name, synced, and renamed: a reader never sees a partial file, and after a crash the
old file is still there.
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
    """{detail} cannot be written ({why}); fix that, then run `jackline export`; no data of the run was lost"""  # noqa: D400 - the message


@contextmanager
def report_path(path: str) -> Iterator[None]:
    """Convert an OSError into a NotWritten error that names the file."""
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


def share_lock(descriptor: int) -> None:
    """Take a shared flock; wait while another open file has it exclusively."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def unlock_descriptor(descriptor: int) -> None:
    """Release the flock, and keep the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def open_lock(path: str) -> int:
    """Open a lock file, and create it if it is missing."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def is_unlocked(path: str) -> bool:
    """Check that no process holds the lock of an existing file; this needs no right to write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: several processes may look at once
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@contextmanager
def lock_folder(path: str) -> Iterator[None]:
    """Wait for the lock of a folder, and hold it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock_descriptor(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


# files that are replaced


@contextmanager
def replace_file(path: str, *, durable: bool = True) -> Iterator[int]:
    """Yield a descriptor to write to; when the block ends without an error, the new file replaces `path`.

    A file that is not durable is also complete, but after a loss of power an older version may be there.
    """
    temporary = _build_temporary_path(path)
    with report_path(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                yield descriptor
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _rename(temporary, path, durable=durable)
        finally:
            _unlink(temporary)


def write_file(path: str, data: bytes) -> None:
    """Replace the content of the file by `data`."""
    write_pieces(path, (data,))


def write_volatile(path: str, data: bytes) -> None:
    """Write a file without waiting for the disk, because it is written again with every change."""
    with replace_file(path, durable=False) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)


def write_pieces(path: str, pieces: Iterable[bytes]) -> None:
    """Replace the content of the file by the pieces, with at most one of them and a small buffer in memory."""
    with replace_file(path) as descriptor, os.fdopen(descriptor, "wb", _BUFFER, closefd=False) as file:
        file.writelines(pieces)


def link_file(source: str, path: str) -> bool:
    """Make `path` a hard link to the file `source`; False if the file system does not support it."""
    temporary = _build_temporary_path(path)
    try:
        os.link(source, temporary, follow_symlinks=False)
    except OSError:
        return False
    with report_path(path):
        try:
            _rename(temporary, path)
        finally:
            _unlink(temporary)  # a rename between two links to one file does nothing, and leaves both
    return True


def write_symlink(target: str, path: str) -> None:
    """Make `path` a symbolic link to `target`."""
    with report_path(path):
        if os.path.islink(path) and os.readlink(path) == target:
            return
        temporary = _build_temporary_path(path)
        try:
            os.symlink(target, temporary)
            _rename(temporary, path)
        finally:
            _unlink(temporary)


def remove_file(path: str) -> None:
    """Remove the file, if it exists."""
    with report_path(path):
        _unlink(path)


# new files, and missing lines


def remove_folder(path: str) -> None:
    """Remove a folder with all that is in it, whatever its permissions; a link is removed itself."""
    import shutil  # few commands remove a folder

    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
        return

    def retry(function: Callable[[str], object], failed: str, _error: object) -> None:
        for folder in (os.path.dirname(failed), failed):
            if os.path.isdir(folder) and not os.path.islink(folder):
                os.chmod(folder, stat.S_IRWXU)
        if function in {os.unlink, os.rmdir}:
            function(failed)
        else:
            shutil.rmtree(failed)

    if os.path.isdir(path):
        shutil.rmtree(path, onerror=retry)


def create_file(path: str, text: str, mode: int = 0o666) -> bool:
    """Write a new file; False if the name exists, even as a dangling link. It never replaces anything."""
    if os.path.lexists(path):
        return False
    temporary = _build_temporary_path(path)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return _link_new(temporary, path)
    except OSError as error:
        error.filename = path  # the caller does not know the temporary name
        raise
    finally:
        _unlink(temporary)


def append_missing(path: str, find_missing: Callable[[bytes], bytes]) -> bool:
    """Append the lines that `find_missing` returns for the content of the file; True if there are any.

    `find_missing` gets and returns lines that end with a newline; the file keeps the line ending of its first line.
    """
    with open(path, "ab+", opener=_open_regular) as file:
        lock_descriptor(file.fileno(), wait=True)  # of two processes, only one appends
        file.seek(0)
        text = file.read()
        missing = find_missing(text.replace(_WINDOWS_END, b"\n"))
        has_windows_ends = text.partition(b"\n")[0].endswith(b"\r")
        file.write(missing.replace(b"\n", _WINDOWS_END) if has_windows_ends else missing)
    return bool(missing)


# folders


def make_private_folder(path: str) -> None:
    """Create the folder and its missing parents, accessible by their owner only."""
    with report_path(path):
        _make_folder(path)


def sweep_folder(folder: str) -> None:
    """Remove temporary files of killed writers; a recent file may belong to a running writer."""
    with report_path(folder):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(".") and name.endswith(_SUFFIX):
                with suppress(FileNotFoundError):
                    if time.time() - os.lstat(path).st_mtime > _ABANDONED_S:
                        os.unlink(path)


def _make_folder(path: str) -> None:
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        _make_folder(parent)
    try:
        os.mkdir(path, FOLDER_MODE)
    except FileExistsError:  # another process was faster; but a file of that name is an error
        if not os.path.isdir(path):
            raise


def _build_temporary_path(path: str) -> str:
    """Build a path in the same folder, because a rename stays in one file system; random, for concurrent writers."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(6).hex()}{_SUFFIX}")


def _rename(source: str, path: str, *, durable: bool = True) -> None:
    os.replace(source, path)
    if not durable:
        return
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # otherwise a loss of power may undo the rename
    finally:
        os.close(descriptor)


def _link_new(temporary: str, path: str) -> bool:
    """Give a file its final name; unlike a rename, a link never replaces a file that appeared meanwhile."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links: check again
        if os.path.lexists(path):
            return False
        os.rename(temporary, path)
    return True


def _open_regular(path: str, flags: int) -> int:
    """Open a file without following a link or waiting for the other end of a pipe."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is not a regular file")
    return descriptor


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
