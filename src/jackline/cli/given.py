"""A payload as it is typed: the words themselves, `-` for standard input, `@FILE` for a file. It parses nothing."""

from __future__ import annotations

from jackline.errors import UsageError


def payload(text: str) -> str:
    """The words themselves, or what they point to."""
    if text != "-" and not text.startswith("@"):
        return text
    from jackline.app import texts

    if text.startswith("@"):
        return texts.text_of(text[1:])
    import sys

    if sys.stdin is None:
        raise UsageError("the payload shall come from stdin, which is closed")
    data = sys.stdin.buffer.read(texts.LONGEST + 1)
    if len(data) > texts.LONGEST:
        raise UsageError(f"the payload on stdin is larger than {texts.LONGEST} bytes")
    return texts.decoded(data, "the payload on stdin")
