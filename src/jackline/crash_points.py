"""Named crash points for tests: with JACKLINE_CRASH_AT=point[:n] they kill the process, otherwise they do nothing.

`JACKLINE_CRASH_AT=call.intent.committed:2` sends SIGKILL to the process that reaches that point for the second time.
All names are listed here, so that a test can crash at each of them.
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
    "host.effect.made",
    "views.written",
)

_wanted, _, _count = os.environ.get("JACKLINE_CRASH_AT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def unknown() -> str | None:
    """Return the name in the environment if there is no such crash point: a test with a typo must not pass."""
    return _wanted if _wanted and _wanted not in POINTS else None


def crash_point(point: str) -> None:
    """Kill this process with SIGKILL, without any cleanup, if the environment names this point."""
    global _left  # noqa: PLW0603 - the count is the only state of a crash point
    if point != _wanted:
        return
    _left -= 1
    if _left == 0:
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
