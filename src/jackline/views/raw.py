"""The raw transcripts, turn by turn: where they lie, reading them while they grow, copying them. Flat memory.

The engine writes them; here they are only read.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator

from jackline.named import NamedTuple

_NAME = re.compile(r"([0-9]{4,})-([a-z]+)\.(stdout|stderr)")
_CHUNK = 1 << 18
_AT_ONCE = 1 << 30
_POLL_S = 0.1
STREAMS = ("stdout", "stderr", "all")
# The file system, or the pair of them, does not copy by itself.
_NOT_HERE = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF})


class RawTurn(NamedTuple):
    """Where the bytes of one turn lie; a file that was never begun is not there."""

    number: int
    role: str
    stdout: str
    stderr: str


def raw_turn_paths(home: str, run_id: str) -> list[RawTurn]:
    """The turns of a run that have printed something, or could have; none if the folder is missing."""
    folder = os.path.join(home, "runs", run_id, "turns")
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = [match for match in map(_NAME.fullmatch, names) if match]
    turns = {(int(match[1]), match[2], f"{match[1]}-{match[2]}") for match in matches}
    return [
        RawTurn(number, role, os.path.join(folder, f"{base}.stdout"), os.path.join(folder, f"{base}.stderr"))
        for number, role, base in sorted(turns)
    ]


def files(home: str, run_id: str, stream: str = "all") -> list[str]:
    """The files of a stream in the order of reading; of `all` each turn's stdout, then its stderr."""
    turns = raw_turn_paths(home, run_id)
    return [path for turn in turns for path in _of(turn, stream)]


def chunks(home: str, run_id: str, stream: str = "all", follow: Callable[[], bool] | None = None) -> Iterator[bytes]:
    """The bytes of a run, without decoration.

    With `follow` it goes on with what is added, turns too, as long as `follow()` says that the run is still
    going; what was written until then is given out before the end. Of `all` both streams come as they grow.
    """
    read: dict[str, int] = {}
    while True:
        going = follow is not None and follow()  # asked before reading: what the run wrote last is not missed
        for path in files(home, run_id, stream):
            yield from _news(path, read)
        if not going:
            return
        time.sleep(_POLL_S)


def copy(paths: list[str], descriptor: int) -> None:
    """Append the files to the descriptor, inside the kernel where it can."""
    for path in paths:
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not _copy_in_kernel(source, descriptor):
                _copy_by_hand(source, descriptor)
        finally:
            os.close(source)


def _of(turn: RawTurn, stream: str) -> tuple[str, ...]:
    match stream:
        case "stdout":
            return (turn.stdout,)
        case "stderr":
            return (turn.stderr,)
        case _:
            return (turn.stdout, turn.stderr)


def _news(path: str, read: dict[str, int]) -> Iterator[bytes]:
    """What was added to a file since it was read last; `read` is moved on before the bytes are given out."""
    try:
        if os.stat(path).st_size <= read.get(path, 0):
            return
        source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        while chunk := os.pread(source, _CHUNK, read.get(path, 0)):
            read[path] = read.get(path, 0) + len(chunk)
            yield chunk
    finally:
        os.close(source)


def _copy_in_kernel(source: int, descriptor: int) -> bool:
    """False if the rest has to be copied by hand: both descriptors stand where the kernel stopped."""
    if not hasattr(os, "copy_file_range"):
        return False
    try:
        while os.copy_file_range(source, descriptor, _AT_ONCE):
            pass
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        return False
    # Some file systems say "nothing left" although there is: the size decides.
    return os.lseek(source, 0, os.SEEK_CUR) >= os.fstat(source).st_size


def _copy_by_hand(source: int, descriptor: int) -> None:
    while chunk := os.read(source, _CHUNK):
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
