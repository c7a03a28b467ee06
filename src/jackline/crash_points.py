"""Named crash points: in production they do nothing, under JACKLINE_CRASH_AT=point[:n] they kill this very process.

`JACKLINE_CRASH_AT=call.intent.committed:2` sends SIGKILL to the process that reaches that point for the second time.
The names are listed here and nowhere else, so that a test can walk through all of them.
"""

from __future__ import annotations

import os

POINTS = (
    "run.created",
    "run.claimed",
    "advance.begun",
    "advance.committed",
    "turn.spawning",
    "turn.spawned",
    "turn.exited",
    "call.intent.begun",
    "call.intent.committed",
    "call.answered",
    "call.outcome.begun",
    "call.outcome.committed",
    "leftovers.ended",
    "probe.finished",
    "call.judged",
    "check.finished",
    "views.written",
)

_wanted, _, _count = os.environ.get("JACKLINE_CRASH_AT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def unknown() -> str | None:
    """The crash point that the environment names and that does not exist: a test with a typo must not pass."""
    return _wanted if _wanted and _wanted not in POINTS else None


def crash_point(point: str) -> None:
    """Die here if the environment asks for it; a crash point must never tidy up, so SIGKILL is the only way."""
    if point == _wanted:
        _count_down()


def _count_down() -> None:
    global _left  # noqa: PLW0603 - the count is the one piece of state a crash point has
    _left -= 1
    if _left == 0:
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
