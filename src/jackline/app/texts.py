"""Reads text files that a person or a project names: whole, bounded, UTF-8. Every failure is one clear line."""

from __future__ import annotations

import os
import stat

from jackline.errors import UsageError

LONGEST = 16 * 1024 * 1024
_NAME_LENGTH, _PATH_LENGTH = 80, 400


def text_of(path: str) -> str:
    """Read a file that a person named; it may be a pipe, which is waited for."""
    return _read_bounded(path, LONGEST, os.O_RDONLY)


def regular_text(path: str, longest: int) -> str:
    """Read a regular file: a pipe would block, and a device never ends."""
    # Non-blocking: the kind of file is known for sure only once it is open.
    return _read_bounded(path, longest, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, regular=True)


def _read_bounded(path: str, longest: int, flags: int, *, regular: bool = False) -> str:
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags | os.O_CLOEXEC)) as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{named(path)} is not a regular file")
            data = file.read(longest + 1)
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        raise UsageError(f"{named(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > longest:
        raise UsageError(f"{named(path)} is larger than {longest} bytes")
    return decoded(data, named(path))


def decoded(data: bytes, what: str) -> str:
    """Decode UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not UTF-8 text") from None


def named(name: str) -> str:
    """Shorten a name for one line of a message."""
    longest = _PATH_LENGTH if os.sep in name else _NAME_LENGTH
    return name if len(name) <= longest else name[: longest - 1] + "…"
