"""Names that others gave to an effect (an address, a number, a commit, a message id), found in its output. Pure.

Only what a tool printed is looked at. It may be huge, so only its two ends are, one line at a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.policy.git_push_args import remove_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.policy.rules import Rule

_END = 65_536
_LINE = 4_096  # a pattern that is slow on long lines must not stop the gate
_VALUE = 500
# In the order in which they are the best name: what was pushed or sent says more than the address of the place.
GENERIC: tuple[tuple[str, str], ...] = (
    ("commit", r"^[ +*=-]*[0-9a-f]{7,64}\.{2,3}([0-9a-f]{7,64})\s+\S+\s+->\s+\S"),
    ("message", r"(?i)\bmessage-?id\"?\s*[:=]\s*\"?(<[^<>\s]+>)"),
    ("url", r"https?://[^\s\"'<>`\\]+"),
    ("pr", r"https?://[^\s\"'<>]+/(?:pull|pulls|merge_requests|pull-requests)/(\d+)\b"),
    ("issue", r"https?://[^\s\"'<>]+/issues/(\d+)\b"),
)
# Printed by a server to say what could be done next: nothing has that address yet.
_OFFERED = re.compile(r"/(?:pull|merge_requests|pull-requests)/new\b|/compare/")
_INGREDIENTS = frozenset({"folder"})


def found(rule: Rule, output: str) -> dict[str, str]:
    """What the rule's patterns and the general ones find, by name; of several matches the last one printed."""
    lines = _lines(output)
    names: dict[str, str] = {}
    for name, pattern in (*rule.external, *GENERIC):
        if name in names:  # the rule's own word before the general one
            continue
        value = _last(pattern, lines)
        if value:
            names[name] = value
    return names


def primary(names: Mapping[str, str]) -> str:
    """The one that a receipt shows: the first; what was written down before the call ran does not count."""
    return next((value for name, value in names.items() if value and not is_ingredient(name)), "")


def is_ingredient(name: str) -> bool:
    """Whether the host told it before the call ran: such names have a dot or a colon."""
    return name in _INGREDIENTS or "." in name or ":" in name


def _lines(output: str) -> list[str]:
    """The last line first, because the last thing that a tool prints is usually its result."""
    ends = output if len(output) <= 2 * _END else f"{output[:_END]}\n{output[-_END:]}"
    return [line[:_LINE] for line in reversed(ends.splitlines()) if line]


def _last(pattern: str, lines: list[str]) -> str:
    try:
        wanted = re.compile(pattern)
    except re.error:  # refused when a policy is loaded; one that was frozen by another version must not stop a run
        return ""
    for line in lines:
        values = [value for value in _values(wanted, line) if value]
        if values:
            return values[-1][:_VALUE]
    return ""


def _values(wanted: re.Pattern[str], line: str) -> Iterator[str]:
    for match in wanted.finditer(line):
        value = (match[1] if wanted.groups else match[0]) or ""
        if "://" not in value:
            yield value.strip()
        elif not _OFFERED.search(value):
            yield remove_credentials(value.rstrip(".,;:!?)]}"))
