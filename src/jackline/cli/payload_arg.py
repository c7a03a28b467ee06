"""Reads the payload argument of `work` and `events`: JSON text, `-` for stdin, or `@FILE`. It parses nothing."""

from __future__ import annotations

from jackline.errors import UsageError


def read_payload(text: str) -> str:
    """Return the text itself, or the contents of stdin or of the file that it names."""
    if text != "-" and not text.startswith("@"):
        return text
    from jackline.app import text_files

    if text.startswith("@"):
        return text_files.read_text(text[1:])
    import sys

    if sys.stdin is None:
        raise UsageError("the payload cannot be read: stdin is closed")
    data = sys.stdin.buffer.read(text_files.TEXT_LIMIT + 1)
    if len(data) > text_files.TEXT_LIMIT:
        raise UsageError(f"the payload on stdin is larger than {text_files.TEXT_LIMIT} bytes")
    return text_files.decode_text(data, "the payload on stdin")
