"""Verification of runs together with their archives. It repairs nothing."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from typing import TYPE_CHECKING

from jackline.domain.events import Event
from jackline.named import load_stored
from jackline.store.verify import UnreadableEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.store.contract import Verified

_KINDS = (str, int, int, str, str, str, str)  # of an event's fields


class Archives:
    """The archives of runs in one folder."""

    def __init__(self, home: Home, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder or os.path.join(home.path, "archive"))
        self.missing = 0  # how many archives were looked up and do not exist

    def __call__(self, run_id: str) -> Iterator[Event] | None:
        path = os.path.join(self.folder, f"{run_id}.jsonl.gz")
        if os.path.exists(path):
            return archived_events(path)
        self.missing += 1
        return None


def verify(home: Home, run_id: str, kept_head: str | None = None, folder: str | None = None) -> Verified:
    """Verify a run. A run that was archived is whole only together with its archive."""
    return home.store().verify(run_id, Archives(home, folder)(run_id), kept_head)


def archived_events(path: str) -> Iterator[Event]:
    """The events of an archive, unverified; UnreadableEvent if it is not an archive."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(_parse_event, file)
    except (OSError, EOFError, ValueError, TypeError, zlib.error) as error:
        raise UnreadableEvent(f"the archive {path} cannot be read ({error})") from None


def _parse_event(line: str) -> Event:
    event = load_stored(Event, json.loads(line))
    if tuple(map(type, event)) != _KINDS:
        raise ValueError("a line is not an event")
    return event
