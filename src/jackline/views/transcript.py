"""A run's transcript in the shape of its predecessor's transcript.jsonl, read page by page. No writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jackline.domain.events import Event
from jackline.domain.records import Run
from jackline.views.entry import EntryType, TranscriptEntry, iterate_transcript, read_transcript
from jackline.views.telling import fold

if TYPE_CHECKING:
    from jackline.store.contract import Store

__all__ = ["EntryType", "TranscriptEntry", "entries_of", "fold", "lines_of", "read_transcript"]

_PAGE = 500


def entries_of(store: Store, run: Run) -> Iterator[TranscriptEntry]:
    """The whole transcript of a run, read page by page."""
    turns = {turn.number: turn for turn in store.turns(run.id)}
    return fold(run, turns, store.checks(run.id), _events(store, run.id))


def lines_of(store: Store, run: Run, path: str) -> Iterator[bytes]:
    """The lines of a run's transcript.jsonl. What was archived has left the store: the old file keeps it."""
    archived = _archived(store, run)
    keeps = archived > 0 and os.path.isfile(path)
    if keeps:
        yield from (entry.to_line() for entry in iterate_transcript(path) if _place(entry) <= archived)
    for entry in entries_of(store, run):
        if not keeps or _place(entry) > archived:
            yield entry.to_line()


def _events(store: Store, run_id: str) -> Iterator[Event]:
    after = 0
    while page := store.events(run_id, after, _PAGE):
        yield from page
        after = page[-1].seq


def _archived(store: Store, run: Run) -> int:
    """The sequence number of the last event that has left the store; 0 if all are there."""
    first = store.events(run.id, 0, 1)
    return first[0].seq - 1 if first else run.event_seq


def _place(entry: TranscriptEntry) -> int:
    place = entry.metadata.get("seq", 0)
    return place if isinstance(place, int) else 0
