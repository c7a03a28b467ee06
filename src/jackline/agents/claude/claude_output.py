"""Claude Code's output (`--output-format stream-json`): a line's events, and how a turn ended. Pure; never raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents.agent_events import call_finished, compacted_event, error_event, retry_event, session_events
from jackline.agents.claude.claude_hooks import EXIT_CODE, has_succeeded_command, is_background
from jackline.agents.json_fields import RAW, as_count, as_dict, as_list, as_number, as_str, seconds_to_ms, usd_to_micros
from jackline.agents.message_blocks import join_text, parse_message, parse_results
from jackline.agents.outcomes import (
    decode_signal,
    failure_of_status,
    failure_of_text,
    last_event,
    last_line,
    outcome_of_event,
    outcome_of_exit,
)
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure, WaitReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TASK_CODE = re.compile(r"exit code (\d{1,3})\)?\Z")
_INVALID_INPUT = "<tool_use_error>"  # the CLI rejected the input before the hook ran
# The hook got no answer from the gate. An HTTP error is an answer, except 401: then the token was lost on the way.
_UNREACHED = re.compile(
    r"\APreToolUse:\S* hook error: \[http://127\.0\.0\.1:\d+/hook\]: failed;[^\n]*\n(?!HTTP (?!401\b)\d)(.*)"
)
_TOKEN_CHARS = 4
_MESSAGE_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_NAMES = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")

_MESSAGE_ERRORS = {  # `error` of a message that the CLI wrote in place of the model
    "authentication_failed": Failure.AUTHENTICATION,
    "oauth_org_not_allowed": Failure.AUTHENTICATION,
    "billing_error": Failure.BILLING,
    "rate_limit": Failure.LIMIT,
    "overloaded": Failure.OVERLOADED,
    "server_error": Failure.OVERLOADED,
    "model_not_found": Failure.MODEL_NOT_FOUND,
}
_API_ERRORS = {"connection_failed": Failure.CONNECTIVITY, "usage_limit_reached": Failure.LIMIT}
_API_TYPES = {"overloaded_error": Failure.OVERLOADED, "api_error": Failure.OVERLOADED}
# The CLI's own lines about answers that had no error status: the provider failed in the middle of a stream.
_API_TEXTS = (
    (
        re.compile(
            r"^API Error: (?:API returned an empty or malformed response|Server error mid-response|Overloaded\b)"
        ),
        Failure.OVERLOADED,
    ),
)
_REASONS = {"prompt_too_long": Failure.CONTEXT_TOO_LONG}
_SUBTYPES = {"error_max_budget_usd": Failure.BUDGET}
_UNKNOWN = Failure.AGENT_ERROR
_NOT_DEFERRED = re.compile(r"^Error: No deferred tool marker found")
_SESSION_LOST = re.compile(r"No conversation found with session ID|^Error: --resume requires a valid session ID")


def parse_fields(fields: dict[str, Any]) -> Iterable[AgentEvent]:
    """Convert the fields of a line to events."""
    match fields.get("type"):
        case "system":
            return _parse_system(fields)
        case "assistant":
            return _parse_assistant(fields)
        case "user":
            return _parse_results(fields)
        case "rate_limit_event":
            # Only a rejected request is a limit; a warning, or a rejection that paid overage covers, is not.
            info = as_dict(fields.get("rate_limit_info"))
            if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
                return ()
            text = f"usage limit reached ({as_str(info.get('rateLimitType')) or 'unknown'})"
            return (AgentEvent(kind="limit", text=text, data={"resets_at": seconds_to_ms(info.get("resetsAt"))}),)
        case "result":
            return _parse_end(fields)
        case "attachment" | "command_lifecycle":
            return ()  # a resumed session repeats these of its hooks
        case _:
            return RAW


def classify(exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
    """The last result decides, then the exit, then the CLI's line on stderr. Errors before a good result are over."""
    end = last_event(events, "end")
    if end is not None and end.data.get("deferred") is True:  # whatever the exit: it may have received our signal
        return Outcome(detail="a call needs approval", waits=WaitReason.APPROVAL, deferred=True)
    if end is not None and end.data.get("ok") is not True:
        return _classify_failed_end(end, events)
    text = last_line(tail)
    if end is None and _SESSION_LOST.search(text):
        return Outcome(failure=_UNKNOWN, detail=text, session_lost=True)
    if end is None and _NOT_DEFERRED.search(text):  # nothing was done; the retry of the turn gets a prompt
        return Outcome(failure=Failure.CRASHED, detail=text)
    return outcome_of_exit(decode_signal(exit_), ended=end is not None, tail=tail)


def _parse_system(fields: Mapping[str, Any]) -> tuple[AgentEvent, ...]:
    match fields.get("subtype"):
        case "init":
            return session_events(fields.get("session_id"))
        case "api_retry":
            delay, status = fields.get("retry_delay_ms"), fields.get("error_status")
            attempt = fields.get("attempt")
            return (retry_event(fields.get("error"), attempt=attempt, delay_ms=delay, status=status),)
        case "task_notification":
            return _parse_task(fields)
        case "compact_boundary":
            facts = as_dict(fields.get("compact_metadata"))
            before, after = (as_count(facts.get(name)) for name in ("pre_tokens", "post_tokens"))
            return (compacted_event(facts.get("trigger"), before=before, after=after),)
        case _:
            return ()  # progress of a task or a hook: the transcript has it


def _parse_task(fields: Mapping[str, Any]) -> tuple[AgentEvent, ...]:
    """The end of a background task; a subagent that was waited for also reports its call separately."""
    call, summary = as_str(fields.get("tool_use_id")), as_str(fields.get("summary"))
    if not call:
        return ()
    code = _TASK_CODE.search(summary)
    is_ok = fields.get("status") == "completed"
    event = call_finished(call, summary, ok=is_ok, exit_code=int(code[1]) if code else None)
    # Marked, because a resumed session reports tasks that ended with the process before it in the same way.
    return (event._replace(data={**event.data, "task": True}),)


def _parse_results(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    """Adds what only the whole line shows: that a call did not run at all, or continues in the background."""
    metas = [as_dict(meta) for meta in as_list(fields.get("tool_result_meta"))]
    not_executed = {meta.get("id") for meta in metas if meta.get("non_execution_kind")}
    for event in parse_results(fields, EXIT_CODE):
        data = dict(event.data)
        if data["call"] in not_executed or (not data["ok"] and data["output"].startswith(_INVALID_INPUT)):
            data["ran"] = False
            if unreached := _UNREACHED.match(data["output"]):
                data["unreached"] = unreached[1]
        elif is_background(fields.get("tool_use_result")):
            data["background"] = True
        elif data["ok"] and has_succeeded_command(fields.get("tool_use_result")):
            data["exit_code"] = 0
        yield event._replace(data=data)


def _parse_assistant(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    message = as_dict(fields.get("message"))
    if as_str(fields.get("error")):  # written by the CLI, not by the model
        yield error_event(join_text(message.get("content")), _classify_fields(fields))
        return
    yield from parse_message(fields)
    # Until the result replaces these figures: those of a message are from its start, before it had any output.
    usage = _parse_usage(as_dict(message.get("usage")), _MESSAGE_NAMES)
    data = {"model": as_str(message.get("model"))}
    yield AgentEvent("usage", data=data, usage=usage, scope=Scope.MESSAGE, message_id=as_str(message.get("id")))
    blocks = [as_dict(block) for block in as_list(message.get("content"))]
    written = sum(len(str(block.get(name, ""))) for block in blocks for name in ("text", "thinking", "input"))
    yield AgentEvent("usage", data=data, usage=Usage(tokens_output=written // _TOKEN_CHARS))


def _parse_end(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    yield from _parse_total_usage(fields)
    if fields.get("stop_reason") == "tool_deferred":
        yield AgentEvent("end", data={"ok": True, "deferred": True})
        return
    if fields.get("is_error") is False and fields.get("subtype") == "success":
        yield AgentEvent("end", data={"ok": True})
        return
    errors = [as_str(one) for one in as_list(fields.get("errors"))]
    text = as_str(fields.get("result")) or next(filter(None, errors), "it failed without giving a reason")
    lost = any(_SESSION_LOST.search(one) is not None for one in errors)
    yield AgentEvent(
        kind="end", text=text, data={"ok": False, "class": str(_classify_fields(fields)), "session_lost": lost}
    )


def _parse_total_usage(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    """`usage` omits subagents and restarts with every result; only the figures by model are complete.

    `model_usage_since_last_result` covers this process if it is its first result. A process with several results
    (a task ran in the background) reports the sum only for the session.
    """
    if "model_usage_since_last_result" not in fields:  # an older version
        own = _parse_usage(as_dict(fields.get("usage")), _MESSAGE_NAMES)
        yield AgentEvent("usage", usage=own, scope=Scope.TURN)
        cost = Usage(usd_micros=usd_to_micros(fields.get("total_cost_usd")))
        yield AgentEvent("usage", usage=cost, scope=Scope.SESSION, priced=True)
    elif as_count(fields.get("result_index")) == 0:
        usage = _sum_models(fields.get("model_usage_since_last_result"))
        yield AgentEvent("usage", usage=usage, scope=Scope.TURN, priced=True)
    else:
        yield AgentEvent("usage", usage=_sum_models(fields.get("modelUsage")), scope=Scope.SESSION, priced=True)


def _sum_models(models: object) -> Usage:
    each = [as_dict(counts) for counts in as_dict(models).values()]
    parts = [_parse_usage(counts, _MODEL_NAMES) for counts in each]
    # Rounded once: the parts of a cheap turn are fractions of a millionth.
    usd = sum(as_number(counts.get("costUSD")) for counts in each)
    return Usage(
        tokens_input=sum(part.tokens_input for part in parts),
        tokens_output=sum(part.tokens_output for part in parts),
        tokens_cached=sum(part.tokens_cached for part in parts),
        usd_micros=usd_to_micros(usd),
    )


def _parse_usage(counts: Mapping[str, Any], names: tuple[str, str, str, str]) -> Usage:
    fresh, created, cached, output = (as_count(counts.get(name)) for name in names)
    return Usage(tokens_input=fresh + created + cached, tokens_output=output, tokens_cached=cached)


def _classify_fields(fields: Mapping[str, Any]) -> Failure:
    """Classify an error message or a result, by its most specific field."""
    if as_str(fields.get("terminal_reason")).startswith("aborted"):
        return Failure.CRASHED
    tables = (
        (_REASONS, "terminal_reason"),
        (_SUBTYPES, "subtype"),
        (_API_ERRORS, "api_error"),
        (_API_TYPES, "api_error_type"),
    )
    for table, name in tables:
        known = table.get(as_str(fields.get(name)))
        if known is not None:
            return known
    if known := _MESSAGE_ERRORS.get(as_str(fields.get("error"))):
        return known
    status = as_count(fields.get("api_error_status"))
    if status or fields.get("terminal_reason") != "api_error":
        return failure_of_status(status) if status else _UNKNOWN
    return failure_of_text(as_str(fields.get("result")), _API_TEXTS) or _UNKNOWN


def _classify_failed_end(end: AgentEvent, events: tuple[AgentEvent, ...]) -> Outcome:
    """A result may be less specific than the message before it, which tells billing from a bad request."""
    outcome, error = outcome_of_event(end), last_event(events, "error")
    if outcome.failure is _UNKNOWN and not outcome.session_lost and error is not None:
        outcome = outcome_of_event(error)
    if outcome.failure is Failure.BUDGET:  # the run's limit, passed on as --max-budget-usd
        return outcome._replace(waits=WaitReason.BUDGET)
    limit = last_event(events, "limit")
    if outcome.failure is Failure.LIMIT and limit is not None:
        return outcome._replace(resets_at=limit.data.get("resets_at"))
    return outcome
