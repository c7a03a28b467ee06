"""Reads foreign JSON and JSON Lines files with bounded memory. It follows no link and reads no pipe."""

from __future__ import annotations

import json
import os
import stat
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.features.importers.import_records import Troubles

MOST_JSON = 8 * 1024 * 1024
MOST_LINE = 2 * 1024 * 1024
MOST_LINES = 1_000_000


class SourceUnreadable(ValueError):
    """The reason why a source cannot be read."""


def open_file(path: str) -> IO[bytes]:
    """Open a regular file; OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def read_object(path: str) -> dict[str, Any]:
    """Read the JSON object in a file; OSError or Unreadable."""
    with open_file(path) as file:
        data = file.read(MOST_JSON + 1)
    if len(data) > MOST_JSON:
        raise SourceUnreadable(f"it is longer than {MOST_JSON} bytes")
    return parse_object(data)


def read_optional_object(path: str, troubles: Troubles) -> dict[str, Any] | None:
    """The same; problems are reported, a missing file is not."""
    try:
        return read_object(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        troubles.add(path, "", error.strerror)
    except SourceUnreadable as error:
        troubles.add(path, "", error)
    return None


def read_lines(path: str, troubles: Troubles) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file, with line numbers; a damaged line is skipped and reported."""
    try:
        with open_file(path) as file:
            yield from _read_objects(path, file, troubles)
    except FileNotFoundError:
        return
    except OSError as error:
        troubles.add(path, "", error.strerror)


def _read_objects(path: str, file: IO[bytes], troubles: Troubles) -> Iterator[tuple[int, dict[str, Any]]]:
    for number in range(1, MOST_LINES + 1):
        line = file.readline(MOST_LINE + 1)
        if not line:
            return
        if len(line) > MOST_LINE:
            while (rest := file.readline(MOST_LINE)) and not rest.endswith(b"\n"):
                pass
            troubles.add(path, f"line {number}", f"it is longer than {MOST_LINE} bytes")
        elif line.strip():
            try:
                found = parse_object(line)
            except SourceUnreadable as error:
                troubles.add(path, f"line {number}", error)
                continue
            yield number, found
    troubles.add(path, f"line {MOST_LINES + 1}", "the rest was not read: there are too many lines")


def parse_object(data: bytes | str) -> dict[str, Any]:
    """Parse a JSON object; Unreadable with the reason."""
    value = parse_value(data)
    if not isinstance(value, dict):
        raise SourceUnreadable("it is not a JSON object")
    return value


def parse_value(data: bytes | str) -> Any:  # noqa: ANN401 - any JSON
    """Parse JSON; NaN and Infinity become null."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(text.removeprefix("\ufeff"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise SourceUnreadable(f"it is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise SourceUnreadable(f"it is not JSON ({error.msg}, character {error.pos})") from None
    except ValueError:
        raise SourceUnreadable("it has a number with too many digits") from None
    except RecursionError:
        raise SourceUnreadable("it is nested too deeply") from None


def get_size(path: str) -> int:
    """The size of a regular file; 0 if there is none."""
    try:
        about = os.lstat(path)
    except OSError:
        return 0
    return about.st_size if stat.S_ISREG(about.st_mode) else 0


def get_modified(path: str) -> int:
    """The time of the last write, in milliseconds; 0 if it is gone."""
    try:
        return round(os.lstat(path).st_mtime * 1000)
    except OSError:
        return 0
