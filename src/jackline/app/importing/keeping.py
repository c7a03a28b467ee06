"""Copies the raw files of an imported run into its folder, with secrets redacted. It never opens a database."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from jackline.app.importing import files
from jackline.app.importing.files import Unreadable
from jackline.domain.secrets.masking import Mask
from jackline.errors import JacklineError
from jackline.files import link_file, make_private_folder, write_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jackline.app.home import Home
    from jackline.app.importing.kinds import FoundRun, RawFile, Troubles

FOLDER, TURNS = "imported", "turns"
MOST_RAW = 1 << 30  # bytes of one file
_CHUNK = 1 << 18


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """List the originals of imported cases that could not be read completely, for uninstall."""
    folder = os.path.join(home.path, FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) and not os.path.islink(folder) else []
    yield folder, "imported files", tuple(os.path.join(folder, name) for name in names if _is_stored_case(home, name))


def _is_stored_case(home: Home, case_id: str) -> bool:
    """Whether the home's own database has the case. A server is not asked; an unreadable database has none."""
    path = os.path.join(home.path, FOLDER, case_id)
    if os.path.islink(path) or not os.path.isdir(path) or "://" in home.database or home.is_new:
        return False
    try:
        return home.store().case(case_id) is not None
    except JacklineError:
        return False


def keep(folder: str, found: FoundRun, secrets: Iterable[str], troubles: Troubles) -> None:
    """Write all files of a run; an unreadable source is reported."""
    known = tuple(secrets)
    kept, turns = os.path.join(folder, FOLDER), os.path.join(folder, TURNS)
    keep_files(kept, found.files, known, troubles)
    make_private_folder(turns)
    for raw in found.files:
        if raw.turn and os.path.exists(os.path.join(kept, raw.name)):
            _link_turn(os.path.join(kept, raw.name), os.path.join(turns, raw.turn))
    for name, text in found.said:
        said = (text.encode("utf-8", "replace"),)
        write_pieces(os.path.join(turns, name), _redact_chunks(said, known))


def keep_files(folder: str, files: Iterable[RawFile], secrets: Iterable[str], troubles: Troubles) -> None:
    """Copy files into a folder."""
    known = tuple(secrets)
    make_private_folder(folder)
    for raw in files:
        try:
            _keep(os.path.join(folder, raw.name), raw, known, troubles)
        except Unreadable as error:
            troubles.add(raw.source, "", error)


def _keep(path: str, raw: RawFile, secrets: tuple[str, ...], troubles: Troubles) -> None:
    with _opened(raw.source) as source:
        write_pieces(path, _redact_chunks(_chunks(source), secrets))
        if _read(source, 1):
            troubles.add(raw.source, "", f"only its first {MOST_RAW} bytes were kept")


def _link_turn(path: str, turn: str) -> None:
    """Link the copy as the output of a turn, or copy it where links fail."""
    if not link_file(path, turn):
        with _opened(path) as copy:
            write_pieces(turn, _chunks(copy))


def _redact_chunks(chunks: Iterable[bytes], secrets: tuple[str, ...]) -> Iterator[bytes]:
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
    """Report a failed read as such, not as a failed write."""
    try:
        return source.read(most)
    except OSError as error:
        raise Unreadable(error.strerror) from None
