"""One line of transcript.jsonl: its fields, how it is written and read, damage and all. Knows no store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from jackline.errors import UsageError
from jackline.named import stored_as
from jackline.views import record_json
from jackline.views.record_json import ZERO_TIME

_OMIT_EMPTY = frozenset({"iteration", "agent", "state", "content", "signal", "error", "duration", "metadata"})


class EntryType(StrEnum):
    """What an entry tells."""

    START = "start"
    ITERATION = "iteration"
    MESSAGE = "message"
    EXECUTE = "execute"
    RESULT = "result"
    SIGNAL = "signal"
    STATE = "state"
    ERROR = "error"
    END = "end"


@stored_as("type timestamp run_id iteration agent state content signal error duration metadata")
@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One line; `duration` counts nanoseconds, as Go's does."""

    type: str = ""
    timestamp: datetime = ZERO_TIME
    run_id: int = 0
    iteration: int = 0
    agent: str = ""
    state: str = ""
    content: str = ""
    signal: str = ""
    error: str = ""
    duration: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values in the predecessor's order, without the optional fields that are empty."""
        return record_json.dump_record(self, _OMIT_EMPTY)

    def to_line(self) -> bytes:
        """The line of the file."""
        return record_json.encode_json(self.to_dict())


def read_transcript(path: str) -> list[TranscriptEntry]:
    """The entries of a file; see iterate_transcript."""
    return list(iterate_transcript(path))


def iterate_transcript(path: str) -> Iterator[TranscriptEntry]:
    """The entries of a file, one at a time.

    A last line that was cut off is passed over. Any other line that cannot be read is told by an `error`
    entry in its place, with its number; the rest is still given.
    """
    try:
        with open(path, "rb") as file:
            yield from _entries(file)
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}): `jackline export RUN` writes it again"
        raise UsageError(message) from error


def _entries(lines: Iterator[bytes]) -> Iterator[TranscriptEntry]:
    last = TranscriptEntry()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            last = TranscriptEntry(**record_json.load_fields(TranscriptEntry, record_json.decode_object(line)))
        except ValueError as error:
            if not line.endswith(b"\n"):
                return
            last = _unreadable(number, error, last)
        yield last


def _unreadable(number: int, error: ValueError, before: TranscriptEntry) -> TranscriptEntry:
    return TranscriptEntry(
        type=EntryType.ERROR,
        timestamp=before.timestamp,
        run_id=before.run_id,
        iteration=before.iteration,
        error=f"line {number} of the transcript cannot be read: {error}",
        metadata={"line": number},
    )
