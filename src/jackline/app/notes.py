"""Small notes in the home as JSON (trust.json, agents.json, canaries.json): whole or not at all, for their owner only.

A note that cannot be read counts as empty: it holds nothing that could not be said or found out again.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, disk_error
from jackline.files import NotWritten, lock_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

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
    try:
        with lock_folder(os.path.dirname(path)):
            data = json.dumps(change(read(path)), indent=1, sort_keys=True).encode()
            write_file(path, data + b"\n")
    except OSError as error:
        raise disk_error(error, path) from None
    except NotWritten as error:
        raise JacklineError(f"{path} cannot be written ({error.facts['why']})") from None
