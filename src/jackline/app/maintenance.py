"""Administration of the database: migrate, status, backup, and the archive of old events. It repairs nothing."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.events import GENESIS, Event, broken_at
from jackline.errors import NoHome, Refused, StoreError
from jackline.files import FOLDER_MODE, NotWritten, replace_file, report_path
from jackline.named import load_stored, stored_dict
from jackline.store import open as store_open
from jackline.store.stream_check import UnreadableEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.store.models import DatabaseStatus, VerificationResult
    from jackline.store.store import Store

_PAGE = 1000
_KINDS = (str, int, int, str, str, str, str)  # of an event's fields


class ArchiveFolder:
    """The archives of runs in one folder."""

    def __init__(self, home: Home, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder or os.path.join(home.path, "archive"))
        self.missing = 0  # how many archives were looked up and do not exist

    def __call__(self, run_id: str) -> Iterator[Event] | None:
        path = os.path.join(self.folder, f"{run_id}.jsonl.gz")
        if os.path.exists(path):
            return read_archive(path)
        self.missing += 1
        return None


def verify_run(home: Home, run_id: str, kept_head: str | None = None, folder: str | None = None) -> VerificationResult:
    """Verify a run. A run that was archived is whole only together with its archive."""
    return home.store().verify.verify_run(run_id, ArchiveFolder(home, folder)(run_id), kept_head)


def read_archive(path: str) -> Iterator[Event]:
    """The events of an archive, unverified; UnreadableEvent if it is not an archive."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(_parse_event, file)
    except (OSError, EOFError, ValueError, TypeError, zlib.error) as error:
        raise UnreadableEvent(f"the archive {path} cannot be read ({error})") from None


def _parse_event(line: str) -> Event:
    data = json.loads(line)
    if not isinstance(data, dict):
        raise TypeError("a line is not an event")
    event = load_stored(Event, data)
    if tuple(map(type, event)) != _KINDS:
        raise ValueError("a line is not an event")
    return event


@dataclass(slots=True)
class ArchiveResult:
    """The result of archiving: runs and events moved, and the runs that were not, with the reason."""

    folder: str
    runs: int = 0
    events: int = 0
    problems: list[str] = field(default_factory=list)


def migrate_database(home: Home) -> list[str]:
    """Bring the database to the schema of this jackline; returns the names of the migrations that were applied."""
    home.create()
    return store_open.migrate(home.database)


def read_status(home: Home) -> DatabaseStatus:
    """The status of the database, even if its schema is of another version."""
    if home.is_new:
        raise NoHome(home.path)
    return store_open.database_status(home.database)


def backup_database(home: Home, path: str) -> str:
    """Copy the database to a new file; returns its absolute path."""
    whole = os.path.abspath(path)
    home.store().admin.backup(whole)
    return whole


def archive_runs(home: Home, older_than_ms: int, folder: str | None = None) -> ArchiveResult:
    """Move the events of runs that ended long ago into one compressed file each."""
    store = home.store()
    done = ArchiveResult(os.path.abspath(folder or os.path.join(home.path, "archive")))
    before = clock.wall_ms() - older_than_ms
    kept: set[str] = set()
    # A run that cannot be archived is listed again: list enough to get past it.
    while found := [one for one in store.admin.list_archivable(before, 100 + len(kept)) if one not in kept]:
        for run_id in found:
            try:
                done.events += _archive_run(store, run_id, done.folder)
                done.runs += 1
            except Refused as error:
                kept.add(run_id)
                done.problems.append(str(error))
    if done.runs:
        home.notify_change()
    return done


def _archive_run(store: Store, run_id: str, folder: str) -> int:
    """Write the archive, then drop the events; after a crash in between, the same is done again."""
    path = os.path.join(folder, f"{run_id}.jsonl.gz")
    head: str | None
    seq, head = _read_archive_end(path)
    first = next(iter(store.records.list_events(run_id, seq, 1)), None)
    if first is not None and first.seq > seq + 1:
        if seq:
            raise Refused(
                f"run {run_id}: events {seq + 1} to {first.seq - 1} are neither in {path} nor in the database"
            )
        # An earlier archive is elsewhere: the remaining events begin in the middle of the chain.
        seq, head = first.seq - 1, None
    ended = _append_events(store, run_id, path, seq, head)
    return store.admin.drop_archived_events(run_id, ended, clock.wall_ms())


def _read_archive_end(path: str) -> tuple[int, str]:
    """The end of an existing archive: a failed run may be archived, resumed, and end again."""
    if not os.path.exists(path):
        return 0, GENESIS
    try:
        events = list(read_archive(path))
    except UnreadableEvent as error:
        raise Refused(f"{error}: move it away, then archive again") from None
    start = events[0].seq - 1 if events else 0
    if not events or _find_break(events, None if start else GENESIS, start) is not None:
        raise Refused(f"{path} was changed since it was written: move it away, then archive again")
    return events[-1].seq, events[-1].hash


def _append_events(store: Store, run_id: str, path: str, seq: int, head: str | None) -> str:
    """Replace the archive by one with the missing events; returns the chain's head."""
    try:
        with report_path(path):
            os.makedirs(os.path.dirname(path), mode=FOLDER_MODE, exist_ok=True)
        with replace_file(path) as descriptor, os.fdopen(descriptor, "wb", closefd=False) as file:
            if os.path.exists(path):
                with open(path, "rb") as old:
                    file.write(old.read())
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                while events := store.records.list_events(run_id, seq, _PAGE):
                    broken = _find_break(events, head, seq)
                    if broken is not None:
                        raise Refused(f"run {run_id}: its chain is broken at event {broken}; it is not archived")
                    seq, head = events[-1].seq, events[-1].hash
                    packed.write("".join(json.dumps(stored_dict(event)) + "\n" for event in events).encode())
    except NotWritten as error:
        message = f"the archive {path} cannot be written: {error.facts['why']}; nothing was removed"
        raise StoreError(message) from None
    return head or GENESIS


def _find_break(events: list[Event], head: str | None, after: int) -> int | None:
    """With an unknown head, the first event is trusted, and the rest must follow from it."""
    if head is not None:
        return broken_at(events, head, after)
    return broken_at(events[1:], events[0].hash, events[0].seq)
