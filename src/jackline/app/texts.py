"""Files that a person or a project names: read whole, within bounds, as text. What cannot be read is one clear line."""

from __future__ import annotations

import os
import stat

from jackline.errors import UsageError

LONGEST = 16 * 1024 * 1024
_LONGEST_NAME, _LONGEST_PATH = 80, 400


def text_of(path: str) -> str:
    """The text of whatever a person named: a pipe is waited for, as they asked."""
    return _bounded(path, LONGEST, os.O_RDONLY)


def regular_text(path: str, longest: int) -> str:
    """The text of a file that must be one: a pipe would be waited for, and a device never ends."""
    # Without waiting for a writer: what it is can only be said for sure once it is open.
    return _bounded(path, longest, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, regular=True)


def _bounded(path: str, longest: int, flags: int, *, regular: bool = False) -> str:
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags | os.O_CLOEXEC)) as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{named(path)} is no regular file")
            data = file.read(longest + 1)
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        raise UsageError(f"{named(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > longest:
        raise UsageError(f"{named(path)} is larger than {longest} bytes")
    return decoded(data, named(path))


def decoded(data: bytes, what: str) -> str:
    """Bytes as text in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not text in UTF-8") from None


def named(name: str) -> str:
    """A name that somebody gave, short enough for one line of a message."""
    longest = _LONGEST_PATH if os.sep in name else _LONGEST_NAME
    return name if len(name) <= longest else name[: longest - 1] + "…"
