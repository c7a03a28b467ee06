"""How a turn of Codex ended, and what its own error lines mean. Pure, but for the time zone of this machine.

Only ever ask about a line of the CLI itself (`error`, `turn.failed`), never about the model's words.
"""

from __future__ import annotations

import re
import time

from jackline.agents import reading, verdict
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure
from jackline.named import NamedTuple

_CODES = {  # of a provider's error that Codex hands on as it is
    "context_length_exceeded": Failure.CONTEXT_TOO_LONG,
    "insufficient_quota": Failure.BILLING,
    "invalid_api_key": Failure.AUTHENTICATION,
    "model_not_found": Failure.MODEL_NOT_FOUND,
    "rate_limit_exceeded": Failure.LIMIT,
    "usage_limit_reached": Failure.LIMIT,
}
_STATUS = re.compile(r"^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
# The words before a colon are Codex's, what follows may be anybody's: so everything is looked for at the beginning.
_PATTERNS = tuple(
    (re.compile(pattern), failure)
    for pattern, failure in (
        (r"^You.ve (?:hit|reached) your (?:usage|spend|monthly) ", Failure.LIMIT),
        (r"^rate limit exceeded: ", Failure.LIMIT),
        (r"^Quota exceeded\b", Failure.BILLING),
        (r"^To use Codex with your ChatGPT plan, upgrade", Failure.BILLING),
        (r"^Your workspace is out of credits", Failure.BILLING),
        (r"^Selected model is at capacity", Failure.OVERLOADED),
        (r"^We.re currently experiencing high demand", Failure.OVERLOADED),
        (r"^Codex ran out of room in the model's context window", Failure.CONTEXT_TOO_LONG),
        (r"^The (?:requested )?model .{1,200} does not exist\b", Failure.MODEL_NOT_FOUND),
        (r"^The .{1,200} model is not supported\b", Failure.MODEL_NOT_FOUND),
        (r"^The .{1,200} model requires a newer version of Codex", Failure.MODEL_NOT_FOUND),
        (r"^Missing environment variable: ", Failure.AUTHENTICATION),
        (r"^Your .{1,40} could not be refreshed\b", Failure.AUTHENTICATION),
        (r"^(?:Connection failed|stream disconnected before completion): ", Failure.CONNECTIVITY),
        (r"^(?:request timed out|timeout waiting for child process to exit)", Failure.CONNECTIVITY),
    )
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_AT = re.compile(
    rf"\b[Tt]ry again at (?:(?P<month>{'|'.join(_MONTHS)})[a-z]* "
    r"(?P<day>\d{1,2})[a-z]{2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2}) (?P<half>[AP]M)"
)
_IN = re.compile(r"\b[Tt]ry again in (\d{1,9}(?:\.\d{1,9})? ?(?:ms|s|m|h))")
_MINUTE = 60_000
_OWN_LINE = re.compile(r"[Ee]rror\b")
_LOST = re.compile(r"^Error: thread/(?:resume|fork): .*no rollout found for thread id")
_TOO_LARGE = '"input_error_code":"input_too_large"'


class Complaint(NamedTuple):
    """What an error line says."""

    failure: Failure
    text: str
    resets_at: int | None = None


def read(text: str, now: int) -> Complaint:
    """The class of an error line, and when it is worth trying again; `now` in milliseconds."""
    code, words = _provider_error(text)
    failure = _CODES.get(code) or _of_status(words) or verdict.of_text(words, _PATTERNS) or Failure.AGENT_ERROR
    return Complaint(failure, words, _resets_at(words, now) if failure is Failure.LIMIT else None)


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The end decides; without one what it complained about, and at the very start what stderr says."""
    end = verdict.last(heard, "end")
    if end is not None:
        is_ok = end.data.get("ok") is True
        return verdict.of_exit(exit_, ended=True, tail=tail) if is_ok else verdict.complained(end)
    said = verdict.said([one for one in heard if not one.data.get("notice")])
    if said is not None:
        return said
    return _without_end(exit_, tail, begun=verdict.last(heard, "session") is not None)


def status_of(text: str) -> int | None:
    """The HTTP status that a line names."""
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _without_end(exit_: Exit, tail: str, *, begun: bool) -> Outcome:
    """It ended before the turn did: then its own error line is on stderr, below what it logs."""
    lines = [line for line in tail.splitlines() if _OWN_LINE.match(line)]
    words = lines[-1] if lines and exit_.code else ""
    if not begun and _LOST.search(words):
        return Outcome(Failure.AGENT_ERROR, words, session_lost=True)
    if _TOO_LARGE in words:
        return Outcome(Failure.CONTEXT_TOO_LONG, words)
    return verdict.of_exit(exit_, ended=False, tail=words or tail)


def _of_status(text: str) -> Failure | None:
    status = status_of(text)
    return None if status is None else verdict.of_status(status)


def _provider_error(text: str) -> tuple[str, str]:
    """Code and message where the line is a provider's whole answer, as for a status of 400; else the line itself."""
    fields = reading.fields_of(text.encode("utf-8", "replace"))
    if fields is None:
        return "", text
    error = reading.table(fields.get("error"))
    words = reading.text(error.get("message")) or reading.text(fields.get("detail"))
    return reading.text(error.get("code")) or reading.text(error.get("type")), words or text


def _resets_at(text: str, now: int) -> int | None:
    if found := _IN.search(text):
        return now + reading.duration(found[1])
    found = _AT.search(text)
    return _local(found, now) if found else None


def _local(found: re.Match[str], now: int) -> int | None:
    """A time of the day in the zone of this machine, today if no date is named; the minute is rounded down by Codex."""
    today = time.localtime(now / 1000)
    month = _MONTHS.index(found["month"]) + 1 if found["month"] else today.tm_mon
    year, day = int(found["year"] or today.tm_year), int(found["day"] or today.tm_mday)
    hour = int(found["hour"]) % 12 + (12 if found["half"] == "PM" else 0)
    try:
        seconds = time.mktime((year, month, day, hour, int(found["minute"]), 0, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return round(seconds) * 1000 + _MINUTE
