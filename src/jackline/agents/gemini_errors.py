"""How a turn of Gemini CLI ended: by its result, the status in its exit code, last its own words. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from jackline.agents import hearing, node, reading, verdict
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure

_AUTHENTICATION_EXIT = 41
_INPUT_EXIT = 42
# It exits with the provider's status, of which the kernel keeps eight bits.
_STATUSES = {one & 0xFF: one for one in (400, 401, 402, 403, 404, 408, 413, 429, 499, 500, 502, 503, 504, 529)}
_BAD_REQUEST, _FORBIDDEN = 400, 403
_GIVING_UP = {"Loop detected, stopping execution", "Maximum session turns exceeded"}
_NOTHING_ASKED = "it reported success and asked no model: the prompt and what came before it are too long for the model"
_LOST = re.compile(r"^Error resuming session:", re.MULTILINE)
_TEXTS = (
    (re.compile(r"token count.*exceeds|maximum number of tokens", re.IGNORECASE), Failure.CONTEXT_TOO_LONG),
    (re.compile(r"API key not valid|API_KEY_INVALID|API key expired", re.IGNORECASE), Failure.AUTHENTICATION),
    (re.compile(r"is not found for API version|model.*not found", re.IGNORECASE), Failure.MODEL_NOT_FOUND),
    (re.compile(r"exhausted your (?:daily quota|capacity)|quota will reset", re.IGNORECASE), Failure.LIMIT),
)
_BROKEN = re.compile(r"fetch failed|terminated|socket|ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UND_ERR", re.IGNORECASE)
_BILLING = re.compile(r"billing", re.IGNORECASE)
_REPORT = re.compile(r"^Error when talking to Gemini API .*?\b(\w+Error):", re.MULTILINE)
_ERRORS = {
    "ModelNotFoundError": Failure.MODEL_NOT_FOUND,
    "TerminalQuotaError": Failure.LIMIT,
    "RetryableQuotaError": Failure.LIMIT,
}
_DELAY = re.compile(
    r"(?:retry (?:after|in)|resets? (?:after|in)) ((?:[\d.]{1,12}(?:ms|d|h|m|s) ?){1,5})", re.IGNORECASE
)


def read(message: str, timestamp: str) -> Heard:
    """The CLI wraps the provider's words, and sometimes the whole JSON of its error: `[API Error: {…}]`."""
    words = message.removeprefix("[API Error: ")
    error = reading.table((reading.fields_of(words.rpartition("]")[0].encode()) or {}).get("error"))
    words = reading.text(error.get("message")) or message
    status = reading.whole(error.get("code"))
    failure = _class(status, words) or Failure.AGENT_ERROR
    return hearing.error(" ".join(words.split()), failure, status=status, resets_at=_resets_at(words, timestamp))


def notice(words: str) -> Heard:
    """An `error` line, after which it goes on, or reports success although it gave up."""
    return hearing.error(words, Failure.AGENT_ERROR, gave_up=words in _GIVING_UP)


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The result decides, but not where it reports success after it stopped, or before it began, its work."""
    end = verdict.last(heard, "end")
    if end is None:
        return _without_result(exit_, tail)
    if end.data.get("ok") is not True or any(one.data.get("gave_up") for one in heard):
        return _failed(exit_, heard, tail)
    if end.data.get("asked") is not True:
        return Outcome(Failure.CONTEXT_TOO_LONG, _NOTHING_ASKED)
    return verdict.of_exit(exit_, ended=True, tail=node.complaint(tail))


def _class(status: int, words: str) -> Failure | None:
    """None where neither the status nor the words tell."""
    if not status and _BROKEN.search(words):
        return Failure.CONNECTIVITY
    if status in {0, _BAD_REQUEST}:
        return verdict.of_text(words, _TEXTS)
    if status == _FORBIDDEN and _BILLING.search(words):
        return Failure.BILLING
    return verdict.of_status(status)


def _failed(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    error = verdict.last(heard, "error") or Heard("error", node.complaint(tail))
    status = error.data.get("status") or _STATUSES.get(exit_.code or 0, 0)
    named = _REPORT.search(tail)
    failure = _class(status, error.text) or _ERRORS.get(named[1] if named else "", Failure.AGENT_ERROR)
    return verdict.complained(Heard("error", error.text, {**error.data, "class": str(failure)}))


def _without_result(exit_: Exit, tail: str) -> Outcome:
    words = node.complaint(tail)
    if exit_.code == _AUTHENTICATION_EXIT:
        return Outcome(Failure.AUTHENTICATION, words)
    if exit_.code == _INPUT_EXIT and _LOST.search(tail):
        return Outcome(Failure.AGENT_ERROR, words, session_lost=True)
    return verdict.of_exit(verdict.caught(exit_), ended=False, tail=words)


def _resets_at(words: str, timestamp: str) -> int | None:
    """When to come back: the words tell a delay, the line tells when they were said."""
    delay = _DELAY.search(words)
    if delay is None:
        return None
    try:
        said = datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None
    return round(said * 1000) + reading.duration(delay[1])
