"""Files that a person names: read whole, within bounds, as text. What cannot be read is one clear line."""

from __future__ import annotations

from jackline.errors import UsageError

LONGEST = 16 * 1024 * 1024


def text_of(path: str) -> str:
    """The file's text."""
    try:
        with open(path, "rb") as file:
            data = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > LONGEST:
        raise UsageError(f"{path} is larger than {LONGEST} bytes")
    return decoded(data, path)


def decoded(data: bytes, what: str) -> str:
    """Bytes as text in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not text in UTF-8") from None
