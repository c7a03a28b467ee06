"""Rules for events of people and agents: their types, payloads and names. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain import plain_json
from jackline.domain.events import canonical
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_KIND = 100
LONGEST_PAYLOAD = 1_000_000  # characters of JSON; larger data belongs in a file

# The first words of jackline's own events, which others must not write.
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
        """As it is printed and parsed."""
        return f"{self.stream}#{self.seq}"


@stored_as("run work_item_id case")
class Owner(NamedTuple):
    """The owner of a stream: a run, a work item or a case; none for the journal itself."""

    run: str | None = None
    work_item_id: str | None = None
    case: str | None = None


def event_id(text: str) -> EventId | None:
    """Parse the name of an event; None if it is invalid."""
    stream, mark, digits = text.rpartition("#")
    well_formed = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return EventId(stream, int(digits)) if mark and stream and well_formed else None


def owner_of(stream: str) -> Owner:
    """Find the owner of a stream."""
    kind, colon, name = stream.partition(":")
    if colon and kind == "work":
        return Owner(work_item_id=name)
    if colon and kind == "case":
        return Owner(case=name)
    return Owner() if ":" in stream else Owner(run=stream)


def wrong_kind(kind: str) -> str:
    """Why an event cannot have this type; empty if it can."""
    if len(kind) > LONGEST_KIND or not re.fullmatch(_KIND, kind, re.ASCII):
        most = f"at most {LONGEST_KIND} characters"
        return f"an event type is words separated by dots, such as build.finished: a-z, 0-9, _ and -, {most}"
    first = kind.partition(".")[0]
    if first in OWN:
        return f"only jackline writes events of type '{first}.…': choose another first word"
    return ""


def wrong_payload(payload: Mapping[str, Any]) -> str:
    """Why a payload cannot be stored; empty if it can."""
    if wrong := plain_json.wrong(dict(payload)):
        return f"the payload {wrong}"
    if len(canonical(dict(payload))) > LONGEST_PAYLOAD:
        return f"the payload is longer than {LONGEST_PAYLOAD:,} characters: write a file and name the file in the event"
    return ""
