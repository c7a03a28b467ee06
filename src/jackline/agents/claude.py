"""The adapter of Claude Code (`claude -p`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/claude/ has its lines.
"""

from __future__ import annotations

import json
import os.path
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jackline.agents import reading, verdict
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome, Scope, Usage
from jackline.domain.states import Failure
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PASSES = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "API_TIMEOUT_MS",
    "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
    # Amazon Bedrock
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE",
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    # Google Vertex AI
    "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLOUD_ML_REGION", "VERTEX_REGION_*",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT",
)  # fmt: skip
DECLARATION = Declaration(
    name="claude",
    binary="claude",
    gate="advisory",
    gate_reason="it tells its calls while they run and asks nobody: they are written down, and not held back",
    chooses_session=True,
    resumes=True,
    forks=True,
    cost=True,
    minimum=(2, 1, 295),
    install="npm install -g @anthropic-ai/claude-code",
    passes=_PASSES,
    efforts=("low", "medium", "high", "xhigh", "max"),
)
# An allow-list and not --dangerously-skip-permissions, which root may not use: with it no tool asks, but for
# changes of .git/ and .claude/, which are refused; what the user's own settings deny stays denied.
_ALLOWED = (
    "Bash", "Edit", "Write", "NotebookEdit", "Read", "WebFetch", "WebSearch", "Task", "Agent",
    "Skill", "Monitor", "Workflow",
)  # fmt: skip
# The first two keep the process alive long after the turn; the third goes on in a folder that nobody looks into.
_DISALLOWED = ("CronCreate", "ScheduleWakeup", "EnterWorktree")
# An allow-list can name no tool of a server that we do not know: those are allowed at the moment they would ask.
_ALLOW = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
_HOOK = {"type": "command", "command": f"echo '{json.dumps(_ALLOW)}'"}
_SETTINGS = {"hooks": {"PermissionRequest": [{"matcher": "mcp__.*", "hooks": [_HOOK]}]}}
_REFUSED = {
    "--bare": "it drops the settings of the run",
    "--safe-mode": "it drops the settings of the run",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--no-session-persistence": "such a session cannot be resumed",
    "--session-id": "jackline chooses the session",
    "--resume": "name the session with jackline's own --session",
    "-r": "name the session with jackline's own --session",
    "--continue": "name the session with jackline's own --session",
    "-c": "name the session with jackline's own --session",
    "--fork-session": "name the session with jackline's own --session",
    "--bg": "it would go on where nobody sees it",
    "--background": "it would go on where nobody sees it",
}
_WORDS = {  # of the `error` of a synthetic message
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
_LOST = re.compile(r"No conversation found with session ID|^Error: --resume requires a valid session ID")
_EXIT_CODE = re.compile(r"Exit code (\d{1,3})(?:\n|$)")
_SIGNALLED = 128
_UNKNOWN = Failure.AGENT_ERROR
_MESSAGE_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_MODEL_NAMES = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


class Claude:
    """Claude Code."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        _refuse_unfit(request.arguments)
        settings = os.path.join(request.folder, "claude-settings.json")
        argv = (
            request.binary or DECLARATION.binary, "-p", "--output-format", "stream-json", "--verbose",
            "--settings", settings, "--allowedTools", ",".join(_ALLOWED), "--disallowedTools", ",".join(_DISALLOWED),
            *_session(request), *_choices(request), *request.arguments,
        )  # fmt: skip
        return Launch(
            argv=argv,
            env=_environment(request),
            files={settings: json.dumps(_SETTINGS).encode()},
            stdin=request.prompt.encode("utf-8", "replace"),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        if not line.strip():
            return ()
        fields = reading.fields_of(line)
        if fields is None:
            return reading.RAW
        match fields.get("type"):
            case "system":
                return _system(fields)
            case "assistant":
                return tuple(_assistant(fields))
            case "user":
                return tuple(_results(fields))
            case "rate_limit_event":
                return _limit(reading.table(fields.get("rate_limit_info")))
            case "result":
                return tuple(_result(fields))
            case _:
                return reading.RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        """The last result decides: what was complained about before a good one was got over."""
        ends = [one for one in heard if one.kind == "end"]
        if ends and ends[-1].data.get("ok") is not True:
            return _failed(ends[-1], heard)
        if not ends and _LOST.search(verdict.last_line(tail)):
            return Outcome(Failure.AGENT_ERROR, verdict.last_line(tail), session_lost=True)
        if (
            exit_.code is not None and exit_.code > _SIGNALLED
        ):  # it catches a signal, tidies up and says so like a shell
            return verdict.of_exit(Exit(None, exit_.code - _SIGNALLED), ended=bool(ends))
        return verdict.of_exit(exit_, ended=bool(ends), tail=tail)


ADAPTER: Adapter = Claude()


# --- launch


def _refuse_unfit(arguments: tuple[str, ...]) -> None:
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in _REFUSED:
            raise UsageError(f"claude cannot be given {flag} here: {_REFUSED[flag]}; leave it out")


def _session(request: TurnRequest) -> tuple[str, ...]:
    if request.fork_of:
        new = ("--session-id", request.session) if request.session else ()
        return ("--resume", request.fork_of, "--fork-session", *new)
    if not request.session:
        return ()
    return ("--resume" if request.resume else "--session-id", request.session)


def _choices(request: TurnRequest) -> Iterator[str]:
    if request.model:
        yield from ("--model", request.model)
    if request.effort:
        yield from ("--effort", request.effort)


def _environment(request: TurnRequest) -> dict[str, str]:
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # Ten by default, which is minutes of silence: we park the run and try again ourselves.
        "CLAUDE_CODE_MAX_RETRIES": request.environ.get("CLAUDE_CODE_MAX_RETRIES", "3"),
    }


# --- parse


def _system(fields: Mapping[str, Any]) -> tuple[Heard, ...]:
    match fields.get("subtype"):
        case "init":
            session = reading.text(fields.get("session_id"))
            return (Heard("session", session),) if session else ()
        case "api_retry":
            data = {
                "attempt": reading.whole(fields.get("attempt")),
                "delay_ms": reading.whole(fields.get("retry_delay_ms")),
                "status": reading.whole(fields.get("error_status")),
            }
            return (Heard("retry", reading.text(fields.get("error")), data),)
        case _:
            return ()  # progress of a task, a hook, a compaction: the transcript has it


def _assistant(fields: Mapping[str, Any]) -> Iterator[Heard]:
    message = reading.table(fields.get("message"))
    blocks = [reading.table(block) for block in reading.items(message.get("content"))]
    if reading.text(fields.get("error")):  # the CLI's own words in the place of the model's
        words = "\n".join(reading.text(block.get("text")) for block in blocks)
        yield Heard("error", words, {"class": str(_class_of(fields))})
        return
    is_subagent = bool(fields.get("parent_tool_use_id"))
    for block in blocks:
        yield from _block(block, is_subagent=is_subagent)
    # Those of subagents come in between each other, and are in the result's sum.
    if not is_subagent:
        usage = _usage(reading.table(message.get("usage")), _MESSAGE_NAMES)
        yield Heard("usage", usage=usage, scope=Scope.MESSAGE, of=reading.text(message.get("id")))


def _block(block: Mapping[str, Any], *, is_subagent: bool) -> Iterator[Heard]:
    match block.get("type"):
        case "text" if not is_subagent:
            yield Heard("message", reading.text(block.get("text")))
        case "thinking" if not is_subagent:
            yield Heard("thinking", reading.text(block.get("thinking")))
        case "tool_use":
            call, tool = reading.text(block.get("id")), reading.text(block.get("name"))
            yield Heard("call.started", data={"call": call, "tool": tool, "input": block.get("input")})


def _results(fields: Mapping[str, Any]) -> Iterator[Heard]:
    message = reading.table(fields.get("message"))
    for block in map(reading.table, reading.items(message.get("content"))):
        if block.get("type") == "tool_result":
            yield _finished(block)


def _finished(block: Mapping[str, Any]) -> Heard:
    output = _words(block.get("content"))
    is_error = block.get("is_error") is True
    data: dict[str, Any] = {"call": reading.text(block.get("tool_use_id")), "ok": not is_error, "output": output}
    code = _EXIT_CODE.match(output) if is_error else None
    return Heard("call.finished", data={**data, "exit_code": int(code[1])} if code else data)


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(reading.text(reading.table(part).get("text")) for part in reading.items(content))


def _limit(info: Mapping[str, Any]) -> tuple[Heard, ...]:
    """Only a refused request is a limit; a warning, or a refusal that paid overage makes up for, is none."""
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return ()
    words = f"usage limit reached ({reading.text(info.get('rateLimitType')) or 'unknown'})"
    return (Heard("limit", words, {"resets_at": reading.milliseconds(info.get("resetsAt"))}),)


def _result(fields: Mapping[str, Any]) -> Iterator[Heard]:
    yield from _spent(fields)
    errors = [reading.text(one) for one in reading.items(fields.get("errors"))]
    is_ok = fields.get("is_error") is False and fields.get("subtype") == "success"
    if is_ok:
        yield Heard("end", data={"ok": True})
        return
    words = reading.text(fields.get("result")) or next(filter(None, errors), "it failed and did not say why")
    lost = any(map(_LOST.search, errors))
    yield Heard("end", words, {"ok": False, "class": str(_class_of(fields)), "session_lost": lost})


# --- what was used


def _usage(counts: Mapping[str, Any], names: tuple[str, str, str, str], usd: object = None) -> Usage:
    fresh, created, cached, output = (reading.whole(counts.get(name)) for name in names)
    return Usage(fresh + created + cached, output, cached, reading.micros(usd))


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
    usd = sum(cost for counts in each if isinstance(cost := counts.get("costUSD"), int | float))
    return Usage(
        sum(part.tokens_input for part in parts),
        sum(part.tokens_output for part in parts),
        sum(part.tokens_cached for part in parts),
        reading.micros(usd),
    )


# --- classify


def _class_of(fields: Mapping[str, Any]) -> Failure:
    """Of a synthetic message or a result: the most telling field first."""
    if reading.text(fields.get("terminal_reason")).startswith("aborted"):
        return Failure.CRASHED
    for table, name in ((_REASONS, "terminal_reason"), (_SUBTYPES, "subtype"), (_API_ERRORS, "api_error")):
        known = table.get(reading.text(fields.get(name)))
        if known is not None:
            return known
    status = reading.whole(fields.get("api_error_status"))
    return _WORDS.get(reading.text(fields.get("error"))) or (verdict.of_status(status) if status else _UNKNOWN)


def _failed(end: Heard, heard: tuple[Heard, ...]) -> Outcome:
    """A result may say less than the message before it, which knows billing from a bad request."""
    told = verdict.said((Heard("error", end.text, end.data),)) or Outcome(_UNKNOWN, end.text)
    errors = [one for one in heard if one.kind == "error"]
    if told.failure is _UNKNOWN and not told.session_lost and errors:
        told = verdict.said(errors[-1:]) or told
    limits = [one for one in heard if one.kind == "limit"]
    if told.failure is Failure.LIMIT and limits:
        return replace(told, resets_at=limits[-1].data.get("resets_at"))
    return told
