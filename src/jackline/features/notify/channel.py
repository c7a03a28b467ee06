"""The channels of a person and the messages they carry: which notice goes where, and how urgent it is. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NTFY, APPRISE, WEBHOOK, COMMAND, BELL = TYPES = ("ntfy", "apprise", "webhook", "command", "bell")
MIN, LOW, DEFAULT, HIGH, MAX = PRIORITIES = ("min", "low", "default", "high", "max")

# The first matching pattern decides.
_PRIORITIES = {
    "run.failed": HIGH,
    "run.cannot_start": HIGH,
    "run.waiting.limit": LOW,
    "run.waiting.paused": LOW,
    "run.waiting.*": HIGH,
    "run.cancelled": LOW,
    "question": HIGH,
    "work.failed": HIGH,
    "service.*": HIGH,
    "schedule.*": HIGH,
    "trigger.*": HIGH,
    "pull_request.*": HIGH,
    "settings.changed": HIGH,
    "log_in": HIGH,
    "budget.spent": HIGH,
    "replies.*": HIGH,
    "reply.*": LOW,
    "test": LOW,
}
_TAGS = {
    "run.succeeded": "white_check_mark",
    "run.failed": "x",
    "run.cancelled": "no_entry_sign",
    "run.waiting.limit": "hourglass",
    "run.waiting.paused": "pause_button",
    "run.waiting.budget": "money_with_wings",
    "run.waiting.*": "raised_hand",
    "question": "question",
    "budget.*": "money_with_wings",
    "*.failed": "x",
    "*.died": "skull",
    "*.missed": "alarm_clock",
    "*.overdue": "alarm_clock",
    "replies.*": "warning",
    "reply.*": "speech_balloon",
    "settings.changed": "warning",
    "log_in": "key",
}


class MessageAction(NamedTuple):
    """A button of a message: pressing it makes a request."""

    label: str
    url: str
    method: str = "POST"
    body: str = ""
    headers: Mapping[str, str] = {}
    clears: bool = True  # whether the message disappears after the request succeeded


class ChannelMessage(NamedTuple):
    """A notice as a channel sends it. The same notice has the same id, however often it is sent."""

    id: str
    kind: str
    title: str
    body: str
    created_at: int
    subject: str  # `run:ID`, or the subject of a notice that is not about a run
    priority: str = DEFAULT
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    agent: str = ""
    task: str = ""
    run_id: str = ""
    folder: str = ""  # the run's folder, with its logs
    actions: tuple[MessageAction, ...] = ()


class Channel(NamedTuple):
    """One `[channels.NAME]` table, checked."""

    name: str
    type: str
    options: Mapping[str, object]  # the keys of its type; secrets are still references to a variable or a file
    kinds: tuple[str, ...] = ()  # patterns; empty: every kind
    labels: tuple[str, ...] = ()
    priorities: Mapping[str, str] = {}  # by pattern of kinds, before the built-in ones
    timeout_s: float = 10.0

    def get_text(self, name: str, default: str = "") -> str:
        """A text among the options."""
        return str(self.options.get(name, default))


def is_wanted(channel: Channel, kind: str, labels: Iterable[str]) -> bool:
    """Whether the channel carries notices of this kind with these labels."""
    return _matches(channel.kinds, (kind,)) and _matches(channel.labels, tuple(labels))


def _matches(patterns: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether a word matches one of the patterns, and none matches a pattern that begins with `!`."""
    excluded = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if any(fnmatchcase(word, pattern) for word in words for pattern in excluded):
        return False
    included = [pattern for pattern in patterns if not pattern.startswith("!")]
    return not included or any(fnmatchcase(word, pattern) for word in words for pattern in included)


def find_priority(channel: Channel, kind: str, own: str = "") -> str:
    """How urgent a notice is: by the channel's table, then the notice's own word, then by its kind."""
    return _find_match(channel.priorities, kind) or own or _find_match(_PRIORITIES, kind) or DEFAULT


def find_tag(kind: str) -> str:
    """The tag that shows at a glance what happened; ntfy shows an emoji of this name."""
    return _find_match(_TAGS, kind) or "bell"


def _find_match(table: Mapping[str, str], kind: str) -> str:
    return next((word for pattern, word in table.items() if fnmatchcase(kind, pattern)), "")


def cut_text(text: str, most_bytes: int) -> str:
    """The beginning of a text that fits into this many bytes of UTF-8."""
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    return data[: most_bytes - len("…".encode())].decode(errors="ignore").rstrip() + "…"
