"""Small notes in the home as JSON (trust.json, agents.json, canaries.json): whole or not at all, for their owner only.

A note that cannot be read counts as empty: it holds nothing that could not be said or found out again.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, disk_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Note = dict[str, dict[str, object]]


def read(path: str) -> Note:
    """The entries of a note."""
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: entry for key, entry in found.items() if isinstance(entry, dict)}


def update(path: str, change: Callable[[Note], Note]) -> None:
    """Read, change and write; one after the other, so that no word of a second writer is lost."""
    from jackline.views import atomic

    try:
        with _alone(os.path.dirname(path)):
            data = json.dumps(change(read(path)), indent=1, sort_keys=True).encode()
            atomic.write(path, data + b"\n")
    except OSError as error:
        raise disk_error(error, path) from None
    except atomic.NotWritten as error:
        raise JacklineError(f"{path} cannot be written ({error.facts['why']})") from None


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
