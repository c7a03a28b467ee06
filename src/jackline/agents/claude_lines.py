"""What the lines of Claude Code say (`--output-format stream-json`), one JSON object each. Pure; never raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents import blocks, claude_errors, claude_hooks, hearing, reading
from jackline.domain.outcome import Heard, Scope, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_TASK_CODE = re.compile(r"exit code (\d{1,3})\)?\Z")
_UNFIT = "<tool_use_error>"  # the input was refused before anybody was asked
# Its hook got no answer from the gate. An error is an answer, but for 401: then the token was lost on the way.
_UNREACHED = re.compile(
    r"\APreToolUse:\S* hook error: \[http://127\.0\.0\.1:\d+/hook\]: failed;[^\n]*\n(?!HTTP (?!401\b)\d)(.*)"
)
_MESSAGE_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_NAMES = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


def heard(fields: dict[str, Any]) -> Iterable[Heard]:
    """What the fields of a line mean."""
    match fields.get("type"):
        case "system":
            return _system(fields)
        case "assistant":
            return _assistant(fields)
        case "user":
            return _results(fields)
        case "rate_limit_event":
            return _limit(reading.table(fields.get("rate_limit_info")))
        case "result":
            return _result(fields)
        case "attachment" | "command_lifecycle":
            return ()  # what a resumed session repeats of its hooks
        case _:
            return reading.RAW


def _system(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    match fields.get("subtype"):
        case "init":
            return hearing.session(fields.get("session_id"))
        case "api_retry":
            delay, status = fields.get("retry_delay_ms"), fields.get("error_status")
            attempt = fields.get("attempt")
            return (hearing.retry(fields.get("error"), attempt=attempt, delay_ms=delay, status=status),)
        case "task_notification":
            return _task(fields)
        case "compact_boundary":
            return _compacted(reading.table(fields.get("compact_metadata")))
        case _:
            return ()  # progress of a task or a hook: the transcript has it


def _compacted(facts: Mapping[str, Any]) -> tuple[Heard, ...]:
    before, after = (reading.whole(facts.get(name)) for name in ("pre_tokens", "post_tokens"))
    return (hearing.compacted(facts.get("trigger"), before=before, after=after),)


def _task(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    """The end of what went on in the background: of a subagent that was waited for, its call is told of besides."""
    call, words = reading.text(fields.get("tool_use_id")), reading.text(fields.get("summary"))
    if not call:
        return ()
    code = _TASK_CODE.search(words)
    is_ok = fields.get("status") == "completed"
    heard = hearing.finished(call, words, ok=is_ok, exit_code=int(code[1]) if code else None)
    # Told from a result: a resumed session tells so of tasks that ended with the process before it.
    return (heard._replace(data={**heard.data, "task": True}),)


def _results(fields: Mapping[str, Any]) -> Iterator[Heard]:
    """With what only the line tells: that a call did not run at all, or that it goes on in the background."""
    metas = [reading.table(meta) for meta in reading.items(fields.get("tool_result_meta"))]
    held = {meta.get("id") for meta in metas if meta.get("non_execution_kind")}
    for heard in blocks.results(fields, claude_hooks.EXIT_CODE):
        data = dict(heard.data)
        if data["call"] in held or (not data["ok"] and data["output"].startswith(_UNFIT)):
            data["ran"] = False
            if unreached := _UNREACHED.match(data["output"]):
                data["unreached"] = unreached[1]
        elif claude_hooks.goes_on(fields.get("tool_use_result")):
            data["background"] = True
        yield heard._replace(data=data)


def _assistant(fields: Mapping[str, Any]) -> Iterator[Heard]:
    message = reading.table(fields.get("message"))
    if reading.text(fields.get("error")):  # the CLI's own words in the place of the model's
        yield hearing.error(blocks.words(message.get("content")), claude_errors.class_of(fields))
        return
    yield from blocks.said(fields)
    # Those of subagents come in between each other, and are in the result's sum.
    if not fields.get("parent_tool_use_id"):
        usage = _usage(reading.table(message.get("usage")), _MESSAGE_NAMES)
        yield Heard("usage", usage=usage, scope=Scope.MESSAGE, of=reading.text(message.get("id")))


def _limit(info: Mapping[str, Any]) -> tuple[Heard, ...]:
    """Only a refused request is a limit; a warning, or a refusal that paid overage makes up for, is none."""
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return ()
    words = f"usage limit reached ({reading.text(info.get('rateLimitType')) or 'unknown'})"
    return (Heard("limit", words, {"resets_at": reading.milliseconds(info.get("resetsAt"))}),)


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    yield from _spent(fields)
    if fields.get("stop_reason") == "tool_deferred":
        yield Heard("end", data={"ok": True, "deferred": True})
        return
    if fields.get("is_error") is False and fields.get("subtype") == "success":
        yield Heard("end", data={"ok": True})
        return
    errors = [reading.text(one) for one in reading.items(fields.get("errors"))]
    words = reading.text(fields.get("result")) or next(filter(None, errors), "it failed and did not say why")
    lost = any(map(claude_errors.is_lost, errors))
    yield Heard("end", words, {"ok": False, "class": str(claude_errors.class_of(fields)), "session_lost": lost})


def _spent(fields: Mapping[str, Any]) -> Iterator[Heard]:
    """`usage` leaves the subagents out and begins again with every result; only the figures by model are whole.

    Since the last result they are those of this process, as long as it is the first result; a process that ends more
    than one (something went on in the background) has told the sum only as that of the session.
    """
    if "model_usage_since_last_result" not in fields:  # an older version
        own = _usage(reading.table(fields.get("usage")), _MESSAGE_NAMES)
        yield Heard("usage", usage=own, scope=Scope.TURN)
        cost = Usage(usd_micros=reading.micros(fields.get("total_cost_usd")))
        yield Heard("usage", usage=cost, scope=Scope.SESSION)
    elif reading.whole(fields.get("result_index")) == 0:
        yield Heard("usage", usage=_by_model(fields.get("model_usage_since_last_result")), scope=Scope.TURN)
    else:
        yield Heard("usage", usage=_by_model(fields.get("modelUsage")), scope=Scope.SESSION)


def _by_model(models: object) -> Usage:
    each = [reading.table(counts) for counts in reading.table(models).values()]
    parts = [_usage(counts, _MODEL_NAMES) for counts in each]
    # Rounded once: the parts of a cheap turn are fractions of a millionth.
    usd = sum(reading.amount(counts.get("costUSD")) for counts in each)
    return Usage(
        sum(part.tokens_input for part in parts),
        sum(part.tokens_output for part in parts),
        sum(part.tokens_cached for part in parts),
        reading.micros(usd),
    )


def _usage(counts: Mapping[str, Any], names: tuple[str, str, str, str]) -> Usage:
    fresh, created, cached, output = (reading.whole(counts.get(name)) for name in names)
    return Usage(fresh + created + cached, output, cached)
