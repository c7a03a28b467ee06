"""How a turn ended, as far as all agents agree: structured fields first, the exit second, the error text last. Pure."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from jackline.domain.outcome import Exit, Outcome
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.outcome import Heard

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
_SHELL = 128


def of_status(status: int) -> Failure:
    """The class of an HTTP status that a provider gave."""
    return Failure.OVERLOADED if status >= _SERVER_ERROR else _STATUS.get(status, Failure.AGENT_ERROR)


def of_text(text: str, patterns: Sequence[tuple[re.Pattern[str], Failure]]) -> Failure | None:
    """The class of the CLI's own error line, by the first pattern that fits. Never ask it about a model's words."""
    return next((failure for pattern, failure in patterns if pattern.search(text)), None)


def last(heard: Sequence[Heard], *kinds: str) -> Heard | None:
    """The last thing of these kinds that was heard."""
    return next((one for one in reversed(heard) if one.kind in kinds), None)


def said(heard: Sequence[Heard]) -> Outcome | None:
    """What the agent said in so many words: a limit, then an error; None if it complained about nothing."""
    limit, error = last(heard, "limit"), last(heard, "error")
    if limit is not None:
        return Outcome(Failure.LIMIT, limit.text[:_DETAIL], resets_at=limit.data.get("resets_at"))
    return None if error is None else complained(error)


def complained(heard: Heard) -> Outcome:
    """What one error, or one end that was none, says about itself."""
    word = heard.data.get("class")
    failure = next((failure for failure in Failure if failure == word), Failure.AGENT_ERROR)
    lost = heard.data.get("session_lost") is True
    return Outcome(failure, heard.text[:_DETAIL], resets_at=heard.data.get("resets_at"), session_lost=lost)


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


def caught(exit_: Exit) -> Exit:
    """The exit of a CLI that catches a signal, tidies up and says so like a shell: 143 is SIGTERM.

    Not above it: there a CLI may mean the eight bits of an HTTP status that fit into a code.
    """
    is_signal = exit_.code is not None and _SHELL < exit_.code <= _SHELL + signal.SIGTERM
    return Exit(None, (exit_.code or 0) - _SHELL) if is_signal else exit_


def last_line(tail: str) -> str:
    """The last line with something on it."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return lines[-1][:_DETAIL] if lines else ""


def _signal_name(number: int | None) -> str:
    known = {int(one): one.name for one in signal.Signals}
    return known.get(number or 0, f"signal {number}" if number else "an unknown signal")
