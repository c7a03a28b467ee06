"""A raw transcript whose secrets are masked before they reach the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.secrets.masking import Mask
from jackline.engine.stream import RawFile

if TYPE_CHECKING:
    from collections.abc import Iterable


class MaskedFile:
    """A raw transcript with masked secrets; a line is written once it is complete."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        """`secrets` are known values; others are recognized by their shape."""
        self._file = RawFile(path)
        self._mask = Mask(secrets)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._file.size

    def write(self, data: bytes) -> bytes:
        """Write all that is certain not to begin a secret; return the bytes written."""
        return self._append(self._mask.feed(data))

    def finish(self) -> bytes:
        """Write the rest at the end of the stream."""
        return self._append(self._mask.end())

    def close(self) -> None:
        self._file.close()

    def _append(self, masked: bytes) -> bytes:
        if masked:
            self._file.write(masked)
        return masked
