"""Copies untracked files, such as `.env`, into the worktree of a run. It follows no link."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.digests import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST_FILES = 2_000
_MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 1 << 20


class CannotCopy(Exception):
    """A file cannot be copied; the message says why."""


def list_copied(root: str, names: Iterable[str]) -> list[str]:
    """The files of these names and below them, relative to the root; CannotCopy if one cannot be copied safely."""
    found: dict[str, None] = {}
    size = 0
    for name in names:
        for path, bytes_ in _list_files(root, name):
            found[path] = None
            size += bytes_
            if len(found) > _MOST_FILES or size > _MOST_BYTES:
                most = f"{_MOST_FILES} files or {_MOST_BYTES >> 20} MB"
                raise CannotCopy(f"{name} is more than {most} to copy: let the set-up command create it")
    return list(found)


def _list_files(root: str, name: str) -> Iterator[tuple[str, int]]:
    """Yield the regular files at or below a name, each with its size."""
    _refuse_outside(root, name)
    path = os.path.join(root, name)
    try:
        status = os.lstat(path)
    except OSError as error:
        raise CannotCopy(f"{path} cannot be copied: {error.strerror}") from error
    if stat.S_ISREG(status.st_mode):
        yield os.path.normpath(name), status.st_size
        return
    if not stat.S_ISDIR(status.st_mode):
        raise CannotCopy(f"{path} is neither a file nor a folder: it cannot be copied")
    if os.path.lexists(os.path.join(path, ".git")):
        raise CannotCopy(f"{path} is a separate git repository: let the set-up command create it")
    for entry in sorted(os.listdir(path)):
        yield from _list_files(root, os.path.join(name, entry))


def _refuse_outside(root: str, name: str) -> None:
    """CannotCopy if the name leads out of the root, into `.git`, or through a link."""
    normal = os.path.normpath(name)
    parts = normal.split(os.sep)
    if os.path.isabs(normal) or parts[0] == os.pardir or normal == os.curdir or ".git" in parts:
        raise CannotCopy(f"{name} cannot be copied: name a file or folder inside the repository")
    for count in range(1, len(parts) + 1):
        path = os.path.join(root, *parts[:count])
        if os.path.islink(path):
            raise CannotCopy(f"{path} is a link, which may lead anywhere: copy the file itself")


def copy_files(source: str, target: str, names: Sequence[str]) -> None:
    """Copy the files with their permissions; the same copy may be made twice."""
    for name in list_copied(source, names) if names else ():
        _refuse_outside(target, os.path.dirname(name) or name)  # a link of the branch must not lead out of the worktree
        path = os.path.join(target, name)
        if os.path.islink(path):
            raise CannotCopy(f"{path} is a link of the branch: {name} cannot be copied there")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _copy_file(os.path.join(source, name), path)


def _copy_file(source: str, path: str) -> None:
    """Copy one file to a temporary name, which is then renamed: a crash leaves no half of a file."""
    temporary = f"{path}.jackline-copy"
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CannotCopy(f"{source} is no longer a regular file")
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o600), "wb") as copy:
                while data := file.read(_CHUNK):
                    copy.write(data)
                os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & 0o777)
            os.rename(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def is_same_file(one: str, other: str) -> bool:
    """Whether both are regular files with the same content."""
    try:
        return _hash_file(one) == _hash_file(other)
    except OSError:
        return False


def _hash_file(path: str) -> str:
    whole = sha256()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file", path)
        while data := file.read(_CHUNK):
            whole.update(data)
    return whole.hexdigest()
