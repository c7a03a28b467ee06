"""Repairs lines from standard input before the SDK reads them. It does not interpret the messages.

Models and JavaScript write lone surrogates as JSON escapes. That is valid JSON, but the SDK drops such a message
without an answer, and the agent waits for it. So a lone surrogate becomes a replacement character.
"""

from __future__ import annotations

import fcntl
import json
import os
from io import TextIOWrapper

_STDIN, _FIRST_FREE = 0, 3
_ESCAPE = "\\ud"


class Lines(TextIOWrapper):
    """Text input without lone surrogates."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as TextIOWrapper has it
        line = super().readline(size)
        return whole(line) if _ESCAPE in line.lower() else line


def whole(line: str) -> str:
    """A line of JSON without lone surrogates; any other line unchanged."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


def standard_input() -> Lines:
    """Take over standard input; processes that a tool starts read an empty one."""
    private = fcntl.fcntl(_STDIN, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    # Never closed: a thread may still read from it when the server ends.
    return Lines(os.fdopen(private, "rb", closefd=False), encoding="utf-8", errors="replace")
