"""The entries of the inbox in words, for the list, the walk and the prompts. It prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import inbox
from jackline.domain.call_text import describe_length
from jackline.formatting import format_duration, make_printable, pluralize

if TYPE_CHECKING:
    from jackline.app.inbox import InboxEntry


def format_heading(entry: InboxEntry, now: int) -> str:
    """One line: the kind, the run, its agent and repository, and how long it waits."""
    name = f"run {entry.run_id} (#{entry.number})" if entry.run_id else entry.item_id
    parts = (inbox.KINDS[entry.kind], name, entry.agent, entry.repository, f"{format_duration(now - entry.since)}")
    return make_printable(" · ".join(part for part in parts if part))


def format_body(entry: InboxEntry) -> list[str]:
    """The whole command or question, the reason, and how to agree for good, without control characters."""
    detail = entry.detail if entry.detail != entry.text else ""
    texts = (entry.text, describe_length(entry.text), detail, entry.agree and f"to agree for good: {entry.agree}")
    return [make_printable(line) for text in texts for line in text.splitlines()]


def count_entries(entries: list[InboxEntry]) -> str:
    """The number of entries in words."""
    return f"{pluralize(len(entries), 'thing')} {'needs' if len(entries) == 1 else 'need'} you"
