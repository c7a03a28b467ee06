"""Splits a text for a stream, in the same way for every wire. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 65_536


def cut(text: str) -> Iterator[str]:
    """Split the text into at least two pieces (one for a single character, none for an empty text)."""
    size = min(_LARGEST, (len(text) + 1) // 2) or 1
    return (text[start : start + size] for start in range(0, len(text), size))
