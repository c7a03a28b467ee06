"""Finds the external ids of an effect (a URL, a number, a commit, a message id) in its output. Pure.

The output may be huge, so only its start and its end are searched, line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy.git_push_args import remove_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.policy.rules import Rule

_MOST_END = 65_536
_MOST_LINE = 4_096  # a pattern that is slow on long lines must not block the gate
_MOST_VALUE = 500
# Best first: what was pushed or sent identifies the effect better than the URL of its page.
GENERIC: tuple[tuple[str, str], ...] = (
    ("commit", r"^[ +*=-]*[0-9a-f]{7,64}\.{2,3}([0-9a-f]{7,64})\s+\S+\s+->\s+\S"),
    ("message", r"(?i)\bmessage-?id\"?\s*[:=]\s*\"?(<[^<>\s]+>)"),
    ("url", r"https?://[^\s\"'<>`\\]+"),
    ("pr", r"https?://[^\s\"'<>]+/(?:pull|pulls|merge_requests|pull-requests)/(\d+)\b"),
    ("issue", r"https?://[^\s\"'<>]+/issues/(\d+)\b"),
)
# URLs that a server prints as a suggestion for a next step: nothing exists there yet.
_SUGGESTED = re.compile(r"/(?:pull|merge_requests|pull-requests)/new\b|/compare/")
_HOST_NAMES = frozenset({"folder"})


def find_external_ids(rule: Rule, output: str) -> dict[str, str]:
    """Find the ids by the patterns of the rule and the generic ones, by name; of several matches the last one."""
    ends = output if len(output) <= 2 * _MOST_END else f"{output[:_MOST_END]}\n{output[-_MOST_END:]}"
    # The last line first: a tool usually prints its result last.
    lines = [line[:_MOST_LINE] for line in reversed(ends.splitlines()) if line]
    found: dict[str, str] = {}
    for name, pattern in (*rule.external, *GENERIC):
        if name not in found and (value := _find_last(pattern, lines)):  # the rule's own patterns come first
            found[name] = value
    return found


def choose_primary_id(names: Mapping[str, str]) -> str:
    """Return the id that a receipt shows: the first one that was not known before the call."""
    return next((value for name, value in names.items() if value and not is_host_value(name)), "")


def is_host_value(name: str) -> bool:
    """Whether the host recorded this value before the call ran: such names have a dot or a colon."""
    return name in _HOST_NAMES or "." in name or ":" in name


def _find_last(pattern: str, lines: list[str]) -> str:
    try:
        compiled = re.compile(pattern)
    except re.error:  # rejected when a policy is loaded, but another version may have frozen it with the run
        return ""
    for line in lines:
        matches = ((match[1] if compiled.groups else match[0]) or "" for match in compiled.finditer(line))
        values = [
            remove_credentials(value.rstrip(".,;:!?)]}")) if "://" in value else value.strip()
            for value in matches
            if "://" not in value or not _SUGGESTED.search(value)
        ]
        if found := next(filter(None, reversed(values)), ""):
            return found[:_MOST_VALUE]
    return ""
