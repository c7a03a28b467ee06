"""How a turn of Claude Code ended: by the fields of its result, then its exit, last its own line on stderr. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents import reading, verdict
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.domain.states import Failure, WaitReason

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS = {  # of the `error` of a message that the CLI wrote in the place of the model
    "authentication_failed": Failure.AUTHENTICATION,
    "oauth_org_not_allowed": Failure.AUTHENTICATION,
    "billing_error": Failure.BILLING,
    "rate_limit": Failure.LIMIT,
    "overloaded": Failure.OVERLOADED,
    "server_error": Failure.OVERLOADED,
    "model_not_found": Failure.MODEL_NOT_FOUND,
}
_API_ERRORS = {"connection_failed": Failure.CONNECTIVITY, "usage_limit_reached": Failure.LIMIT}
_REASONS = {"prompt_too_long": Failure.CONTEXT_TOO_LONG}
_SUBTYPES = {"error_max_budget_usd": Failure.BUDGET}
_UNKNOWN = Failure.AGENT_ERROR
_NOT_DEFERRED = re.compile(r"^Error: No deferred tool marker found")
_LOST = re.compile(r"No conversation found with session ID|^Error: --resume requires a valid session ID")


def class_of(fields: Mapping[str, Any]) -> Failure:
    """Of such a message or a result: the most telling field first."""
    if reading.text(fields.get("terminal_reason")).startswith("aborted"):
        return Failure.CRASHED
    for table, name in ((_REASONS, "terminal_reason"), (_SUBTYPES, "subtype"), (_API_ERRORS, "api_error")):
        known = table.get(reading.text(fields.get(name)))
        if known is not None:
            return known
    status = reading.whole(fields.get("api_error_status"))
    return _WORDS.get(reading.text(fields.get("error"))) or (verdict.of_status(status) if status else _UNKNOWN)


def is_lost(line: str) -> bool:
    """Whether the CLI says that it does not know the session."""
    return _LOST.search(line) is not None


def classify(exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
    """The last result decides: what was complained about before a good one was got over."""
    end = verdict.last(heard, "end")
    if end is not None and end.data.get("deferred") is True:  # however it ended then: it may have had our signal
        return Outcome(detail="a call needs approval", waits=WaitReason.APPROVAL, deferred=True)
    if end is not None and end.data.get("ok") is not True:
        return _failed(end, heard)
    words = verdict.last_line(tail)
    if end is None and is_lost(words):
        return Outcome(_UNKNOWN, words, session_lost=True)
    if end is None and _NOT_DEFERRED.search(words):  # nothing was done: tried again, the turn is given a prompt
        return Outcome(Failure.CRASHED, words)
    return verdict.of_exit(verdict.caught(exit_), ended=end is not None, tail=tail)


def _failed(end: Heard, heard: tuple[Heard, ...]) -> Outcome:
    """A result may say less than the message before it, which knows billing from a bad request."""
    told, error = verdict.complained(end), verdict.last(heard, "error")
    if told.failure is _UNKNOWN and not told.session_lost and error is not None:
        told = verdict.complained(error)
    if told.failure is Failure.BUDGET:  # the limit of the run, passed on as --max-budget-usd
        return told._replace(waits=WaitReason.BUDGET)
    limit = verdict.last(heard, "limit")
    if told.failure is Failure.LIMIT and limit is not None:
        return told._replace(resets_at=limit.data.get("resets_at"))
    return told
