"""How far the messages of a reply topic were read, as a channel stores it. Pure.

A server may show a message live before an earlier one, and stores both in some order: reading begins a minute before
the newest message, and the ids of that minute say which were read.
"""

from __future__ import annotations

import json

from jackline.named import NamedTuple

OVERLAP_S = 60
_MOST_SEEN = 10_000
_FASTEST_CLOCK_S = 300  # how far ahead the server's clock may be; a later time would skip what follows


class ReadPosition(NamedTuple):
    """The messages of the topic that were read. Times are seconds of the server's clock."""

    start: int  # messages before it are ignored
    newest: int = 0
    seen: tuple[tuple[str, int], ...] = ()  # ids and times of the last minute

    @property
    def since(self) -> int:
        """From when on the server is asked for messages."""
        return max(self.start, self.newest - OVERLAP_S)

    def is_read(self, message_id: str, time: int) -> bool:
        """Whether a message was read before, or is older than the channel."""
        return time < self.start or any(message_id == known for known, _ in self.seen)

    def add(self, message_id: str, time: int, now: int) -> ReadPosition:
        """The position after this message; `now` is this machine's time."""
        newest = max(self.newest, min(time, now + _FASTEST_CLOCK_S))
        # By the message's own time, however far ahead: the server returns it again until `since` has passed it.
        seen = [(known, at) for known, at in self.seen if at >= newest - OVERLAP_S]
        return self._replace(newest=newest, seen=(*seen, (message_id, max(time, newest - OVERLAP_S)))[-_MOST_SEEN:])


def parse_position(text: str, start: int) -> ReadPosition:
    """The stored position; a channel that never read begins at `start`."""
    if not text:
        return ReadPosition(start)
    values = json.loads(text)
    return ReadPosition(
        start=values["start"], newest=values["newest"], seen=tuple((one, at) for one, at in values["seen"])
    )


def format_position(position: ReadPosition) -> str:
    """The position as it is stored."""
    return json.dumps({"start": position.start, "newest": position.newest, "seen": position.seen})
