"""Small JSON files in the home (trust.json, agents.json, canaries.json): written atomically, private to their owner.

A file that cannot be read counts as empty: its content can be confirmed or found again.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, disk_error
from jackline.files import NotWritten, lock_folder, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

Entry = dict[str, object]
Entries = dict[str, Entry]


def read_entries(path: str) -> Entries:
    """Read the entries of a file."""
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: entry for key, entry in found.items() if isinstance(entry, dict)}


def update_entries(path: str, change: Callable[[Entries], Entries]) -> None:
    """Read, change and write under a lock, so that concurrent updates are not lost."""
    try:
        with lock_folder(os.path.dirname(path)):
            data = json.dumps(change(read_entries(path)), indent=1, sort_keys=True).encode()
            write_file(path, data + b"\n")
    except OSError as error:
        raise disk_error(error, path) from None
    except NotWritten as error:
        raise JacklineError(f"{path} cannot be written ({error.facts['why']})") from None
