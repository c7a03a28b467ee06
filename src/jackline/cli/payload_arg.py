"""Reads arguments that may come from elsewhere: `-` is stdin, and a payload may be `@FILE`. It parses nothing."""

from __future__ import annotations

from jackline.errors import UsageError


def read_payload(text: str) -> str:
    """Return the text itself, or the contents of stdin or of the file that it names."""
    if text != "-" and not text.startswith("@"):
        return text
    from jackline.app import text_files

    if text.startswith("@"):
        return text_files.read_text(text[1:])
    return read_stdin("the payload")


def read_stdin(what: str) -> str:
    """Return all of stdin; UsageError if it is closed, too large or not text."""
    import sys

    from jackline.app import text_files

    if sys.stdin is None:
        raise UsageError(f"{what} cannot be read: stdin is closed")
    data = sys.stdin.buffer.read(text_files.TEXT_LIMIT + 1)
    if len(data) > text_files.TEXT_LIMIT:
        raise UsageError(f"{what} on stdin is larger than {text_files.TEXT_LIMIT} bytes")
    return text_files.decode_text(data, f"{what} on stdin")
