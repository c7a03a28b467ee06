"""What a client writes to standard input, line by line, as the SDK can read it. It understands nothing of it.

Half of an emoji, which models and JavaScript do write, is valid JSON in the form of an escape, but the SDK drops such a
message without an answer, and the agent waits for it. So it becomes the sign for a character that cannot be shown.
"""

from __future__ import annotations

import fcntl
import json
import os
from io import TextIOWrapper

_STDIN, _FIRST_FREE = 0, 3
_ESCAPE = "\\ud"


class Lines(TextIOWrapper):
    """Text whose lines have no half characters in them."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as TextIOWrapper has it
        line = super().readline(size)
        return whole(line) if _ESCAPE in line.lower() else line


def whole(line: str) -> str:
    """A line of JSON without half characters; any other line as it is."""
    try:
        told = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return told.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


def standard_input() -> Lines:
    """Standard input, which nobody else gets any more: whatever a tool starts reads nothing."""
    private = fcntl.fcntl(_STDIN, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, _STDIN)
    os.close(nothing)
    # Never closed: a thread may still wait for it when the server ends.
    return Lines(os.fdopen(private, "rb", closefd=False), encoding="utf-8", errors="replace")
