"""How a turn ended, where all agents agree: structured fields first, then the exit, then the error text. Pure."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from jackline.domain.outcome import Exit, Outcome
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.outcome import AgentEvent

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
_SHELL = 128  # a shell adds it to the number of a signal


def failure_of_status(status: int) -> Failure:
    """Classify a provider's HTTP status."""
    return Failure.OVERLOADED if status >= _SERVER_ERROR else _STATUS.get(status, Failure.AGENT_ERROR)


def failure_of_text(text: str, patterns: Sequence[tuple[re.Pattern[str], Failure]]) -> Failure | None:
    """Classify the CLI's own error line by the first matching pattern. Never pass a model's words."""
    return next((failure for pattern, failure in patterns if pattern.search(text)), None)


def last_event(events: Sequence[AgentEvent], *kinds: str) -> AgentEvent | None:
    """Find the last event of these kinds."""
    return next((one for one in reversed(events) if one.kind in kinds), None)


def outcome_of_complaints(events: Sequence[AgentEvent]) -> Outcome | None:
    """The outcome of the last limit, else of the last error; None if the agent reported neither."""
    limit, error = last_event(events, "limit"), last_event(events, "error")
    if limit is not None:
        return Outcome(failure=Failure.LIMIT, detail=limit.text[:_DETAIL], resets_at=limit.data.get("resets_at"))
    return None if error is None else outcome_of_event(error)


def outcome_of_event(event: AgentEvent) -> Outcome:
    """The outcome of one error, or of one end that failed."""
    name = event.data.get("class")
    failure = next((failure for failure in Failure if failure == name), Failure.AGENT_ERROR)
    lost = event.data.get("session_lost") is True
    return Outcome(
        failure=failure, detail=event.text[:_DETAIL], resets_at=event.data.get("resets_at"), session_lost=lost
    )


def outcome_of_exit(exit_: Exit, *, ended: bool, tail: str = "") -> Outcome:
    """The outcome of the process's exit alone; exit code 0 counts only with a terminal event (`ended`)."""
    if exit_.lost:
        return Outcome(failure=Failure.CRASHED, detail="the process was lost with its warden")
    if exit_.signal is not None or exit_.code is None:
        known = {int(one): one.name for one in signal.Signals}
        name = known.get(exit_.signal or 0, f"signal {exit_.signal}" if exit_.signal else "an unknown signal")
        return Outcome(failure=Failure.CRASHED, detail=f"killed by {name}")
    if exit_.code != 0:
        text = last_line(tail)
        return Outcome(failure=Failure.AGENT_ERROR, detail=f"exit code {exit_.code}{f': {text}' if text else ''}")
    if not ended:
        return Outcome(
            failure=Failure.NO_TERMINAL_EVENT, detail="it exited with code 0 without reporting that it was done"
        )
    return Outcome()


def decode_signal(exit_: Exit) -> Exit:
    """Convert the exit code of a CLI that catches a signal and exits like a shell: 143 is SIGTERM.

    Codes above that stay: a CLI may exit with the low eight bits of an HTTP status.
    """
    is_signal = exit_.code is not None and _SHELL < exit_.code <= _SHELL + signal.SIGTERM
    return Exit(code=None, signal=(exit_.code or 0) - _SHELL) if is_signal else exit_


def last_line(tail: str) -> str:
    """The last line that is not blank."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return lines[-1][:_DETAIL] if lines else ""
