"""Reads the payload argument of `work` and `events`: JSON text, `-` for stdin, or `@FILE`. It parses nothing."""

from __future__ import annotations

from jackline.errors import UsageError


def payload(text: str) -> str:
    """Return the text itself, or the contents of stdin or of the file that it names."""
    if text != "-" and not text.startswith("@"):
        return text
    from jackline.app import texts

    if text.startswith("@"):
        return texts.text_of(text[1:])
    import sys

    if sys.stdin is None:
        raise UsageError("the payload cannot be read: stdin is closed")
    data = sys.stdin.buffer.read(texts.LONGEST + 1)
    if len(data) > texts.LONGEST:
        raise UsageError(f"the payload on stdin is larger than {texts.LONGEST} bytes")
    return texts.decoded(data, "the payload on stdin")
