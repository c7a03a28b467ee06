"""The raw files of an imported run, copied into its folder with their secrets covered. It never opens a database."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from jackline.app.importing import files
from jackline.app.importing.files import Unreadable
from jackline.domain.secrets.masking import Mask
from jackline.views import atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jackline.app.importing.kinds import FoundRun, RawFile, Troubles

FOLDER, TURNS = "imported", "turns"
MOST_RAW = 1 << 30  # bytes of one file
_CHUNK = 1 << 18


def keep(folder: str, found: FoundRun, secrets: Iterable[str], troubles: Troubles) -> None:
    """Write them all; a source that cannot be read is told, and the others are kept."""
    known = tuple(secrets)
    for name in (FOLDER, TURNS):
        atomic.private_folder(os.path.join(folder, name))
    for raw in found.files:
        try:
            _keep(folder, raw, known, troubles)
        except Unreadable as error:
            troubles.add(raw.source, "", error)
    for name, text in found.said:
        said = (text.encode("utf-8", "replace"),)
        atomic.write_all(os.path.join(folder, TURNS, name), _covered(said, known))


def _keep(folder: str, raw: RawFile, secrets: tuple[str, ...], troubles: Troubles) -> None:
    path = os.path.join(folder, FOLDER, raw.name)
    with _opened(raw.source) as source:
        atomic.write_all(path, _covered(_chunks(source), secrets))
        if _read(source, 1):
            troubles.add(raw.source, "", f"only its first {MOST_RAW} bytes were kept")
    if not raw.turn:
        return
    turn = os.path.join(folder, TURNS, raw.turn)
    if not atomic.link(path, turn):  # a second name, where there is such a thing: no gigabyte need be there twice
        with _opened(path) as copy:
            atomic.write_all(turn, _chunks(copy))


def _covered(chunks: Iterable[bytes], secrets: tuple[str, ...]) -> Iterator[bytes]:
    mask = Mask(secrets)
    for chunk in chunks:
        yield mask.feed(chunk)
    yield mask.end()


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    left = MOST_RAW
    while left and (chunk := _read(source, min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _opened(path: str) -> IO[bytes]:
    try:
        return files.opened(path)
    except OSError as error:
        raise Unreadable(error.strerror) from None


def _read(source: IO[bytes], most: int) -> bytes:
    """What cannot be read must not look as if it could not be written."""
    try:
        return source.read(most)
    except OSError as error:
        raise Unreadable(error.strerror) from None
