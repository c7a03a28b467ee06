"""What people and agents may write into the journal: the words for an event, and how it is named. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain import plain_json
from jackline.domain.events import canonical
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_KIND = 100
LONGEST_PAYLOAD = 1_000_000  # characters of JSON: what is larger is a file, and its path belongs here

# The first words of jackline's own events: whoever reads them must be able to believe them.
OWN = frozenset(
    {
        "agent", "attempt", "call", "cancel", "case", "check", "gate", "import", "jackline", "mcp", "notice",
        "probe", "receipt", "recovery", "replay", "retro", "run", "schedule", "session", "step", "stop", "trigger",
        "turn", "work",
    }
)  # fmt: skip
_KIND = r"[a-z][a-z0-9_.-]*"
_MOST_DIGITS = 18  # what both databases hold


class EventId(NamedTuple):
    """The name of an event: `STREAM#SEQ`."""

    stream: str
    seq: int

    def __str__(self) -> str:
        """As it is printed, and read again."""
        return f"{self.stream}#{self.seq}"


class Owner(NamedTuple):
    """Whose stream it is: at most one of them; none of the journal itself."""

    run: str | None = None
    work_item_id: str | None = None
    case: str | None = None


def event_id(text: str) -> EventId | None:
    """The event that a text names; None if it is no such name."""
    stream, mark, digits = text.rpartition("#")
    well_formed = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return EventId(stream, int(digits)) if mark and stream and well_formed else None


def owner_of(stream: str) -> Owner:
    """The run, the work item or the case that a stream belongs to."""
    kind, colon, name = stream.partition(":")
    if colon and kind == "work":
        return Owner(work_item_id=name)
    if colon and kind == "case":
        return Owner(case=name)
    return Owner() if ":" in stream else Owner(run=stream)


def wrong_kind(kind: str) -> str:
    """Why an event may not be of this kind, in words; empty if it may."""
    if len(kind) > LONGEST_KIND or not re.fullmatch(_KIND, kind, re.ASCII):
        most = f"at most {LONGEST_KIND} characters"
        return f"an event's type is words with dots between, such as build.finished: a-z, 0-9, _ and -, {most}"
    first = kind.partition(".")[0]
    if first in OWN:
        return f"events of type '{first}.…' are written by jackline itself: choose another first word"
    return ""


def wrong_payload(payload: Mapping[str, Any]) -> str:
    """Why this is nothing to be written down, in words; empty if it can be."""
    if wrong := plain_json.wrong(dict(payload)):
        return f"the payload {wrong}"
    if len(canonical(dict(payload))) > LONGEST_PAYLOAD:
        return f"the payload is longer than {LONGEST_PAYLOAD:,} characters: write a file, and name it in the event"
    return ""
