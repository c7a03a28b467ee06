"""Reads text files that a person or a project names: whole, bounded, UTF-8. Every failure is one clear line."""

from __future__ import annotations

import json
import os
import stat
from typing import Any, NoReturn

from jackline.domain import events
from jackline.errors import UsageError

TEXT_LIMIT = 16 * 1024 * 1024
_NAME_LENGTH, _PATH_LENGTH = 80, 400


def read_text(path: str) -> str:
    """Read a file that a person named; it may be a pipe, which is waited for."""
    return _read_bounded(path, TEXT_LIMIT, os.O_RDONLY)


def read_regular_text(path: str, longest: int) -> str:
    """Read a regular file: a pipe would block, and a device never ends."""
    # Non-blocking: the kind of file is known for sure only once it is open.
    return _read_bounded(path, longest, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, regular=True)


def _read_bounded(path: str, longest: int, flags: int, *, regular: bool = False) -> str:
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags | os.O_CLOEXEC)) as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{shorten_name(path)} is not a regular file")
            data = file.read(longest + 1)
    except (OSError, ValueError) as error:  # a NUL in the name is a ValueError
        raise UsageError(f"{shorten_name(path)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > longest:
        raise UsageError(f"{shorten_name(path)} is larger than {longest} bytes")
    return decode_text(data, shorten_name(path))


def decode_text(data: bytes, what: str) -> str:
    """Decode UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not UTF-8 text") from None


def shorten_name(name: str) -> str:
    """Shorten a name for one line of a message."""
    longest = _PATH_LENGTH if os.sep in name else _NAME_LENGTH
    return name if len(name) <= longest else name[: longest - 1] + "…"


LONGEST_JSON = 1_000_000  # characters; larger data belongs in a file


def parse_json_text(text: str, what: str, example: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse a text; UsageError for invalid JSON, NaN and infinities."""
    if len(text) > LONGEST_JSON:
        raise UsageError(f"{what} is longer than {LONGEST_JSON:,} characters: write a file and name the file")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise UsageError(f"{what} is nested more than {events.DEEPEST} deep") from None
    except ValueError as error:
        raise UsageError(f"{what} is not valid JSON ({error}): use JSON such as '{example}'") from None
    if wrong := events.find_json_problem(value):
        raise UsageError(f"{what} {wrong}")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")
