"""Files that are written once, whole or not at all, and lines that are added once. It replaces nothing."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_WINDOWS = b"\r\n"


def write(path: str, text: str, mode: int = 0o666) -> bool:
    """Whether it was written; False if anything of that name is there, be it a link that leads nowhere."""
    if os.path.lexists(path):
        return False
    beside = f"{path}.{os.urandom(6).hex()}.unfinished"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return _named(beside, path)
    except OSError as error:
        error.filename = path  # nobody knows the name beside it
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _named(beside: str, path: str) -> bool:
    """Give it its name; unlike a rename, a second name never replaces a file that appeared meanwhile."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without second names: one more look has to do
        if os.path.lexists(path):
            return False
        os.rename(beside, path)
    return True


def add(path: str, lacking: Callable[[bytes], bytes]) -> bool:
    """Whether something was added to the end of a file: what `lacking` says that its text lacks.

    Lines end with a newline in what it is told and says, and in the file as they ended there before.
    """
    import fcntl

    with open(path, "ab+", opener=_opener) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # of two at once only one adds it
        file.seek(0)
        text = file.read()
        more = lacking(text.replace(_WINDOWS, b"\n"))
        has_windows_ends = text.partition(b"\n")[0].endswith(b"\r")
        file.write(more.replace(b"\n", _WINDOWS) if has_windows_ends else more)
    return bool(more)


def _opener(path: str, flags: int) -> int:
    """Through no link, and without waiting for whoever reads a pipe."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is no regular file")
    return descriptor
