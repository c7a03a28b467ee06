"""Splits an agent's output into lines and stores it, in constant memory. It does not parse the lines."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Self

from jackline.errors import disk_error
from jackline.named import NamedTuple
from jackline.secrets.masking import SecretMask

if TYPE_CHECKING:
    from collections.abc import Iterable


LINE_LIMIT = 16 * 1024 * 1024
HEAD_LIMIT = 64 * 1024


class OutputLine(NamedTuple):
    """One line of a stream, without its newline. For a line over the limit `data` is only its head."""

    data: bytes
    offset: int  # of its first byte in the stream
    length: int  # the full length, also when truncated
    truncated: bool
    terminated: bool  # False only for the last line of a stream that does not end with a newline


class LineSplitter:
    """Splits chunks of any size into lines; buffers at most one unfinished line of `limit` bytes."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._head_limit = min(HEAD_LIMIT, limit)
        self._begun = io.BytesIO()  # getvalue() does not copy
        self._length = 0
        self._offset = 0

    def feed(self, chunk: bytes) -> list[OutputLine]:
        first, *rest = chunk.split(b"\n")
        self._grow(first)
        if not rest:
            return []
        lines = [self._finish(terminated=True)]
        last = rest.pop()
        offset, limit = self._offset, self.limit
        for data in rest:
            length = len(data)
            if length <= limit:
                lines.append(OutputLine(data=data, offset=offset, length=length, truncated=False, terminated=True))
            else:
                lines.append(
                    OutputLine(
                        data=data[: self._head_limit], offset=offset, length=length, truncated=True, terminated=True
                    )
                )
            offset += length + 1
        self._offset = offset
        self._grow(last)
        return lines

    def end(self) -> list[OutputLine]:
        """Return the last line if the stream did not end with a newline."""
        return [self._finish(terminated=False)] if self._length else []

    def _grow(self, piece: bytes) -> None:
        held = self._begun.tell()
        self._length += len(piece)
        if self._length <= self.limit:
            self._begun.write(piece)
        elif held < self._head_limit:
            self._begun.write(memoryview(piece)[: self._head_limit - held])
        elif held > self._head_limit:
            head = self._begun.getbuffer()[: self._head_limit].tobytes()
            self._begun = io.BytesIO()
            self._begun.write(head)

    def _finish(self, *, terminated: bool) -> OutputLine:
        truncated = self._length > self.limit
        line = OutputLine(
            data=self._begun.getvalue(),
            offset=self._offset,
            length=self._length,
            truncated=truncated,
            terminated=terminated,
        )
        self._offset += self._length + terminated
        self._begun = io.BytesIO()
        self._length = 0
        return line


class TranscriptFile:
    """A raw transcript, append-only and readable by its owner only."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._fd).st_size

    def write(self, data: bytes) -> int:
        """Append the data and return the offset of its first byte."""
        offset = self.size
        rest = memoryview(data)
        try:
            while rest:
                written = os.write(self._fd, rest)
                self.size += written
                rest = rest[written:]
        except OSError as error:
            raise disk_error(error, self._path) from error
        return offset

    def sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._fd)  # macOS has no fdatasync

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RedactedFile:
    """A raw transcript with masked secrets; a line is written once it is complete."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        """`secrets` are known values; others are recognized by their shape."""
        self._file = TranscriptFile(path)
        self._mask = SecretMask(secrets)

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
