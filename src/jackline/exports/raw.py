"""Finds, reads, follows and copies the raw output files of a run's turns, in constant memory.

The engine writes these files; this module only reads them.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator

from jackline.named import NamedTuple

_FILE_NAME = re.compile(r"([0-9]{4,})-([a-z]+)\.(stdout|stderr)")
_CHUNK_BYTES = 1 << 18
_KERNEL_COPY_BYTES = 1 << 30
_POLL_S = 0.1
STREAMS = ("stdout", "stderr", "all")
# The file systems do not support copies inside the kernel.
_UNSUPPORTED = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF})


class RawTurn(NamedTuple):
    """The paths of one turn's output; a file exists only once the turn has started."""

    number: int
    role: str
    stdout: str
    stderr: str


def find_raw_turns(home: str, run_id: str) -> list[RawTurn]:
    """Return the turns of a run that have output files; none if the folder is missing."""
    folder = os.path.join(home, "runs", run_id, "turns")
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = [match for match in map(_FILE_NAME.fullmatch, names) if match]
    turns = {(int(match[1]), match[2], f"{match[1]}-{match[2]}") for match in matches}
    return [
        RawTurn(
            number=number,
            role=role,
            stdout=os.path.join(folder, f"{base}.stdout"),
            stderr=os.path.join(folder, f"{base}.stderr"),
        )
        for number, role, base in sorted(turns)
    ]


def list_raw_files(home: str, run_id: str, stream: str = "all", turn: int | None = None) -> list[str]:
    """Return the files of a stream in reading order, of one turn or all; `all` is each turn's stdout, then stderr."""
    turns = [one for one in find_raw_turns(home, run_id) if turn in {None, one.number}]
    if stream == "all":
        return [path for one in turns for path in (one.stdout, one.stderr)]
    return [one.stdout if stream == "stdout" else one.stderr for one in turns]


def read_chunks(
    home: str, run_id: str, stream: str = "all", follow: Callable[[], bool] | None = None, turn: int | None = None
) -> Iterator[bytes]:
    """Yield the output of a run unchanged.

    With `follow`, keep yielding what is added, including new turns, until `follow()` returns False; everything
    written before that is yielded. With `all`, both streams are yielded as they grow.
    """
    offsets: dict[str, int] = {}
    while True:
        is_active = follow is not None and follow()  # checked before reading: the last output is not missed
        for path in list_raw_files(home, run_id, stream, turn):
            yield from _read_new(path, offsets)
        if not is_active:
            return
        time.sleep(_POLL_S)


def copy_files(paths: list[str], descriptor: int) -> None:
    """Append the files to the descriptor, inside the kernel if possible."""
    for path in paths:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not _copy_in_kernel(source, descriptor):
                _copy_in_process(source, descriptor)
        finally:
            os.close(source)


def _read_new(path: str, offsets: dict[str, int]) -> Iterator[bytes]:
    """Yield what was added to a file since the last read; `offsets` is updated before each chunk."""
    try:
        if os.stat(path).st_size <= offsets.get(path, 0):
            return
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        while chunk := os.pread(source, _CHUNK_BYTES, offsets.get(path, 0)):
            offsets[path] = offsets.get(path, 0) + len(chunk)
            yield chunk
    finally:
        os.close(source)


def _copy_in_kernel(source: int, descriptor: int) -> bool:
    """Return False if the rest must be copied here; both descriptors are where the kernel stopped."""
    if not hasattr(os, "copy_file_range"):
        return False
    try:
        while os.copy_file_range(source, descriptor, _KERNEL_COPY_BYTES):
            pass
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    # Some file systems report the end too early: compare with the size.
    return os.lseek(source, 0, os.SEEK_CUR) >= os.fstat(source).st_size


def _copy_in_process(source: int, descriptor: int) -> None:
    while chunk := os.read(source, _CHUNK_BYTES):
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
