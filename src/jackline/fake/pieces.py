"""How a text is cut for a stream, the same for every wire. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 65_536


def cut(text: str) -> Iterator[str]:
    """The text in at least two pieces (one, where it is a single character; none, where it is empty)."""
    size = min(_LARGEST, (len(text) + 1) // 2) or 1
    return (text[start : start + size] for start in range(0, len(text), size))
