"""A raw transcript whose secrets are covered before they reach the disk, byte for byte. It never looks at lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.secrets.masking import Mask
from jackline.engine.stream import RawFile

if TYPE_CHECKING:
    from collections.abc import Iterable


class MaskedFile:
    """A raw transcript as it may be kept; a line that is not finished is written when it is."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        """`secrets` are values that are known, besides those that are known by their shape."""
        self._file = RawFile(path)
        self._mask = Mask(secrets)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._file.size

    def write(self, data: bytes) -> bytes:
        """Write what is sure by now; gives back what was written."""
        return self._keep(self._mask.feed(data))

    def finish(self) -> bytes:
        """Nothing more will come: write the rest."""
        return self._keep(self._mask.end())

    def close(self) -> None:
        self._file.close()

    def _keep(self, covered: bytes) -> bytes:
        if covered:
            self._file.write(covered)
        return covered
