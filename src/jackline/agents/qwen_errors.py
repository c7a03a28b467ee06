"""How a turn of Qwen Code ended: by its result, then its exit, last its own line on stderr. Pure."""

from __future__ import annotations

import re

from jackline.agents import hearing, node, verdict
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure

_LOST = re.compile(r"^No saved session found with ", re.MULTILINE)
_STATUS = re.compile(r"^\[API Error: (\d{3})\b|\(HTTP (\d{3})\)")
_BAD_REQUESTS = {400, 403}  # providers use these for more than one thing, and only their words tell
_CONTEXT = (
    r"context[_ ]length|context window|maximum context|context is too large|input length|too many tokens|"
    r"prompt is too long"
)
_TEXTS = (
    (re.compile(_CONTEXT, re.IGNORECASE), Failure.CONTEXT_TOO_LONG),
    (re.compile(r"insufficient[_ ](?:balance|quota)|arrearage|overdue|billing", re.IGNORECASE), Failure.BILLING),
    (re.compile(r"quota|rate.?limit", re.IGNORECASE), Failure.LIMIT),
    (re.compile(r"API key|auth type|credential", re.IGNORECASE), Failure.AUTHENTICATION),
)
_BROKEN = re.compile(
    r"Connection error|fetch failed|terminated|socket|ECONN|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UND_ERR|stream activity|"
    r"timed? ?out", re.IGNORECASE,
)  # fmt: skip


def read(words: str) -> Heard:
    """The CLI's own error line, which is all that it tells: `[API Error: 401 …]`."""
    return hearing.error(" ".join(words.split()), _class(words))


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The last result decides: what was complained about before a good one was got over."""
    end, error = verdict.last(heard, "end"), verdict.last(heard, "error")
    if end is not None and end.data.get("ok") is not True:
        return Outcome(Failure.AGENT_ERROR) if error is None else verdict.complained(error)
    if end is None and _LOST.search(tail):
        return Outcome(Failure.AGENT_ERROR, verdict.last_line(tail), session_lost=True)
    return verdict.of_exit(verdict.caught(exit_), ended=end is not None, tail=node.complaint(tail))


def _class(words: str) -> Failure:
    found = _STATUS.search(words)
    status = int(found[1] or found[2]) if found else 0
    if not status and _BROKEN.search(words):
        return Failure.CONNECTIVITY
    if not status or status in _BAD_REQUESTS:
        told = verdict.of_text(words, _TEXTS)
        if told is not None:
            return told
    return verdict.of_status(status)
