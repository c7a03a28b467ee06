"""How a turn ended, as far as all agents agree: structured fields first, the exit second, the error text last. Pure."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from jackline.domain.outcome import Outcome
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.outcome import Exit, Heard

_STATUS = {
    400: Failure.AGENT_ERROR,
    401: Failure.AUTHENTICATION,
    402: Failure.BILLING,
    403: Failure.AUTHENTICATION,
    404: Failure.MODEL_NOT_FOUND,
    408: Failure.CONNECTIVITY,
    413: Failure.CONTEXT_TOO_LONG,
    429: Failure.LIMIT,
}
_SERVER_ERROR = 500
_DETAIL = 500


def of_status(status: int) -> Failure:
    """The class of an HTTP status that a provider gave."""
    return Failure.OVERLOADED if status >= _SERVER_ERROR else _STATUS.get(status, Failure.AGENT_ERROR)


def of_text(text: str, patterns: Sequence[tuple[re.Pattern[str], Failure]]) -> Failure | None:
    """The class of the CLI's own error line, by the first pattern that fits. Never ask it about a model's words."""
    return next((failure for pattern, failure in patterns if pattern.search(text)), None)


def said(heard: Sequence[Heard]) -> Outcome | None:
    """What the agent said in so many words: a limit, then an error; None if it complained about nothing."""
    last = {one.kind: one for one in heard}
    if "limit" in last:
        limit = last["limit"]
        return Outcome(Failure.LIMIT, limit.text[:_DETAIL], resets_at=limit.data.get("resets_at"))
    if "error" in last:
        return _error(last["error"])
    return None


def of_exit(exit_: Exit, *, ended: bool, tail: str = "") -> Outcome:
    """What the end of the process alone tells; an exit code of 0 is only believed with a terminal event."""
    if exit_.lost:
        return Outcome(Failure.CRASHED, "the process was lost with its warden")
    if exit_.signal is not None or exit_.code is None:
        return Outcome(Failure.CRASHED, f"killed by {_signal_name(exit_.signal)}")
    if exit_.code != 0:
        words = last_line(tail)
        return Outcome(Failure.AGENT_ERROR, f"exit code {exit_.code}{f': {words}' if words else ''}")
    if not ended:
        return Outcome(Failure.NO_TERMINAL_EVENT, "it exited with code 0 and never said that it was done")
    return Outcome()


def last_line(tail: str) -> str:
    """The last line with something on it."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return lines[-1][:_DETAIL] if lines else ""


def _error(error: Heard) -> Outcome:
    word = error.data.get("class")
    failure = next((failure for failure in Failure if failure == word), Failure.AGENT_ERROR)
    lost = error.data.get("session_lost") is True
    return Outcome(failure, error.text[:_DETAIL], resets_at=error.data.get("resets_at"), session_lost=lost)


def _signal_name(number: int | None) -> str:
    known = {int(one): one.name for one in signal.Signals}
    return known.get(number or 0, f"signal {number}" if number else "an unknown signal")
