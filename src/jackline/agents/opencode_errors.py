"""How a turn of opencode or a fork of it ended, and what its error events mean. Pure.

It has no last event: a turn is done when its last step finished for the reason `stop`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents import hearing, reading, verdict
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED = {
    "ProviderAuthError": Failure.AUTHENTICATION,
    "ContextOverflowError": Failure.CONTEXT_TOO_LONG,
}
_CODED = {
    "insufficient_quota": Failure.BILLING,
    "billing_hard_limit_reached": Failure.BILLING,
    "model_not_found": Failure.MODEL_NOT_FOUND,
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
}
_TEXTS = (
    (re.compile(r"^(ProviderModelNotFoundError: )?Model not found: "), Failure.MODEL_NOT_FOUND),
    (re.compile(r"^Cannot connect to API|timed out|socket connection was closed", re.IGNORECASE), Failure.CONNECTIVITY),
)
_LOST = re.compile(r"^(Error: )?Session not found$", re.MULTILINE)


def read(error: dict[str, Any], now: int) -> Heard:
    """An error event; `now`, in milliseconds, is when it was told."""
    data = reading.table(error.get("data"))
    name, words = reading.text(error.get("name")), reading.text(data.get("message"))
    status = reading.whole(data.get("statusCode"))
    failure = _class(name, words, status, data)
    headers = reading.table(data.get("responseHeaders"))
    resets_at = _resets_at(headers, now) if failure is Failure.LIMIT else None
    ref = reading.text(data.get("ref"))
    return hearing.error(words or name, failure, status=status, ref=ref, resets_at=resets_at)


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The last word counts: an error that a later step got over is none."""
    last = verdict.last(heard, "end", "error")
    if last is None and exit_.code and _LOST.search(tail):
        return Outcome(Failure.AGENT_ERROR, "Session not found", session_lost=True)
    if last is None or exit_.lost or exit_.signal is not None:
        return verdict.of_exit(exit_, ended=False, tail=tail)
    if last.kind == "error":
        return verdict.complained(_explained(last, tail))
    if last.data.get("ok") is not True:
        return Outcome(Failure.AGENT_ERROR, f"the model stopped for another reason than being done: {last.text}")
    if exit_.code == 1 and verdict.last(heard, "error") is not None:
        return Outcome()  # the code stands for that error, also when the turn went on and ended well
    return verdict.of_exit(exit_, ended=True, tail=tail)


def _class(name: str, words: str, status: int, data: Mapping[str, Any]) -> Failure:
    body = reading.fields_of(reading.text(data.get("responseBody")).encode("utf-8", "replace")) or {}
    code = reading.text(reading.table(body.get("error")).get("code"))
    if name in _NAMED:
        return _NAMED[name]
    if status:
        return _CODED.get(code) or verdict.of_status(status)
    if data.get("isRetryable") is True:
        return Failure.CONNECTIVITY  # no answer came, and it would have tried again
    return verdict.of_text(words, _TEXTS) or Failure.AGENT_ERROR


def _resets_at(headers: Mapping[str, Any], now: int) -> int | None:
    """When a limit ends, where the provider said after how many seconds; `now` is the time of the event."""
    seconds = reading.text(headers.get("retry-after"))
    return now + int(seconds) * 1000 if now and seconds.isdecimal() and len(seconds) < len("1000000000") else None


def _explained(error: Heard, tail: str) -> Heard:
    """An error that only names a line of the log, with what that line says."""
    ref = error.data.get("ref")
    if not ref:
        return error
    found = re.search(rf'\bref={re.escape(ref)} error="([^"]*)"', tail)
    if found is None:
        return error
    failure = verdict.of_text(found[1], _TEXTS) or Failure.AGENT_ERROR
    return Heard("error", found[1], {**error.data, "class": str(failure)})
