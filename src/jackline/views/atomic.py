"""Files that are there whole or not at all: written beside their place, synced, then renamed into it.

A reader never sees half a projection, and a crash leaves the old one. Nothing here knows what the files mean.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from jackline.errors import JacklineError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_SUFFIX = ".tmp"
_FORGOTTEN_S = 3600.0
_BUFFER = 1 << 16


class NotWritten(JacklineError):
    """{detail} cannot be written ({why}): mend that, then `jackline export`; the run is safe"""  # noqa: D400 - the message


@contextmanager
def named(path: str) -> Iterator[None]:
    """Tell a person which file could not be written, and why."""
    try:
        yield
    except OSError as error:
        raise NotWritten(path, why=error.strerror or error) from error


@contextmanager
def replacing(path: str, *, durable: bool = True) -> Iterator[int]:
    """A descriptor to write to; when the block ends well, what was written takes the place of `path`.

    What is not durable is whole all the same, but a loss of power may bring back an older one.
    """
    beside = _beside(path)
    with named(path):
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            try:
                yield descriptor
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _move(beside, path, durable=durable)
        finally:
            _forget(beside)


def write(path: str, data: bytes) -> None:
    """Make `data` the whole content of the file."""
    write_all(path, (data,))


def write_often(path: str, data: bytes) -> None:
    """The same for a file that is written again with every change, which need not wait for the disk."""
    with replacing(path, durable=False) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)


def write_all(path: str, pieces: Iterable[bytes]) -> None:
    """Make the pieces the content of the file, with no more than one of them and a small buffer in memory."""
    with replacing(path) as descriptor, os.fdopen(descriptor, "wb", _BUFFER, closefd=False) as file:
        file.writelines(pieces)


def link(source: str, path: str) -> bool:
    """Make `path` a second name of the file `source`; False where the file system does not do that."""
    beside = _beside(path)
    try:
        os.link(source, beside, follow_symlinks=False)
    except OSError:
        return False
    with named(path):
        try:
            _move(beside, path)
        finally:
            _forget(beside)  # a rename between two names of one file does nothing, and leaves both
    return True


def symlink(target: str, path: str) -> None:
    """Make `path` a symbolic link to `target`."""
    with named(path):
        if os.path.islink(path) and os.readlink(path) == target:
            return
        beside = _beside(path)
        try:
            os.symlink(target, beside)
            _move(beside, path)
        finally:
            _forget(beside)


def remove(path: str) -> None:
    """Make sure that no such file is there."""
    with named(path), suppress(FileNotFoundError):
        os.unlink(path)


def private_folder(path: str) -> None:
    """Make the folder and those above it that are missing; only their owner may look into them."""
    with named(path):
        _make(path)


def sweep(folder: str) -> None:
    """Remove what a writer that was killed left behind; a fresh one may still be at work."""
    with named(folder):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(".") and name.endswith(_SUFFIX) and _age_s(path) > _FORGOTTEN_S:
                _forget(path)


def _make(path: str) -> None:
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent and parent != path:
        _make(parent)
    try:
        os.mkdir(path, FOLDER_MODE)
    except FileExistsError:  # somebody was quicker; but a file in its place is an error
        if not os.path.isdir(path):
            raise


def _beside(path: str) -> str:
    """A name in the same folder: a rename stays in one file system. Random, for writers side by side."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(6).hex()}{_SUFFIX}")


def _move(source: str, path: str, *, durable: bool = True) -> None:
    os.replace(source, path)
    if not durable:
        return
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)  # else the rename itself may be lost with the power
    finally:
        os.close(descriptor)


def _forget(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _age_s(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0
