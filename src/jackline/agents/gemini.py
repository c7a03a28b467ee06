"""Gemini CLI (`gemini -o stream-json`): how it is launched, and what its output means. Starts nothing, reads no file.

Every statement about the CLI was observed with the real one; tests/agents/recorded/gemini/ has its output.
"""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jackline.agents.agent_events import call_finished, call_started, error_event, session_events
from jackline.agents.cli_args import (
    OWN_SESSION,
    encode_node_prompt,
    find_error_line,
    list_node_arguments,
    mcp_servers,
    model_flag,
    node_argv,
    node_env,
    reject_arguments,
)
from jackline.agents.front_matter import has_only_text
from jackline.agents.json_fields import RAW, as_count, as_dict, as_str, parse_duration_ms, parse_line, parse_object
from jackline.agents.outcomes import (
    decode_signal,
    failure_of_status,
    failure_of_text,
    last_event,
    outcome_of_event,
    outcome_of_exit,
)
from jackline.domain.adapter import Adapter, Declaration, Launch, LoginFacts, ProjectFiles, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_DEFAULTS_PATH = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
DECLARATION = Declaration(
    name="gemini",
    binary="gemini",
    gate="advisory",
    gate_reason="it reports calls when they start and asks no gate: calls are recorded, not held back",
    chooses_session=True,
    resumes=True,
    binds_sessions=True,
    prices="gemini",
    minimum=(0, 61, 0),
    install="npm install -g @google/gemini-cli",
    login=LoginFacts(
        command="run `gemini` once and choose how to log in, or set GEMINI_API_KEY",
        variables=(
            "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_VERTEXAI",
            "GOOGLE_GENAI_USE_GCA", "CLOUD_SHELL", "GEMINI_CLI_USE_COMPUTE_ADC",
        ),
        home_variable="GEMINI_CLI_HOME",
        folder=".gemini",
        below=".gemini",
        files=("oauth_creds.json", ".env", "settings.json"),  # the settings name the chosen way; a keyring has the key
        project_files=(".env", ".gemini/.env", ".gemini/settings.json"),
        project_words=("selectedType",),
    ),
    switches_off={"--yolo": "its questions before a call"},
    read_only="its plan mode, which has no shell",
    passes=(
        "GEMINI_API_KEY", "GEMINI_API_KEY_AUTH_MECHANISM", "GEMINI_MODEL", "GEMINI_CLI_HOME", "GEMINI_SYSTEM_MD",
        "GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_CLI_USE_COMPUTE_ADC", "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "GEMINI_CLI_TRUSTED_FOLDERS_PATH", "CODE_ASSIST_ENDPOINT",
        "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID",
        "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_CLOUD_UNIVERSE_DOMAIN",
        "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_API_VERSION", "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_VERTEX_BASE_URL", "CLOUD_SHELL", "CLOUDSDK_CONFIG", "GCLOUD_PROJECT",
    ),
    passes_if={"GOOGLE_GENAI_USE_GCA": ("GOOGLE_CLOUD_ACCESS_TOKEN",)},
    mcp=os.geteuid() == 0,
    mcp_reason=f"only for root, and not if {_DEFAULTS_PATH} is set: any other file would replace your settings",
    project_files=ProjectFiles(
        settings=(".gemini", ".env"),
        texts=(".gemini/skills", ".gemini/GEMINI.md", ".agents/skills"),
        is_text=has_only_text,
    ),
    account_variables=(
        "GEMINI_CLI_HOME", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GEMINI_CLI_USE_COMPUTE_ADC",
    ),
)  # fmt: skip
# Defaults, not settings: the choices of the user or an administrator stay.
_DEFAULTS = {
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "maxAttempts": 2,  # the default of ten means minutes of silence; jackline parks the run and retries
        "retryFetchErrors": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
}
_OWN_PROMPT = "the prompt comes on stdin"
_REJECTED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "--experimental-acp": "use the agent acp for it",
    "-r": OWN_SESSION,
    "--resume": OWN_SESSION,
    "--session-id": OWN_SESSION,
    "--session-file": OWN_SESSION,
    "-w": "it would work outside the workspace",
    "--worktree": "it would work outside the workspace",
}


class GeminiAdapter:
    """Gemini CLI."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        reject_arguments(DECLARATION.name, request.arguments, _REJECTED)
        argv = (
            *node_argv(request.binary or DECLARATION.binary, {}), "--output-format", "stream-json", "--skip-trust",
            *_build_arguments(request), *list_node_arguments(request),
        )  # fmt: skip
        env = {**node_env(request, DECLARATION), "GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_TELEMETRY_ENABLED": "false"}
        defaults = os.path.join(request.folder, "gemini-defaults.json")
        stdin = encode_node_prompt(DECLARATION.name, request)
        # It reads this file only where root alone can write, and reports an error about any other at every start.
        if os.geteuid() != 0 or _DEFAULTS_PATH in request.environ:
            return Launch(argv=argv, env=env, stdin=stdin)
        # The CLI merges the servers of all its files by name.
        servers = {"mcpServers": mcp_servers(request.mcp)} if request.mcp else {}
        files = {defaults: json.dumps({**_DEFAULTS, **servers}).encode()}
        return Launch(argv=argv, env={**env, _DEFAULTS_PATH: defaults}, files=files, stdin=stdin)

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse_line(line, _parse_fields)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        """The result decides, unless it reports success after the CLI gave up or without asking the model."""
        end, text = last_event(events, "end"), find_error_line(tail)
        if end is None and exit_.code == _AUTHENTICATION_EXIT:
            return Outcome(failure=Failure.AUTHENTICATION, detail=text)
        if end is None and exit_.code == _INPUT_EXIT and _SESSION_LOST.search(tail):
            return Outcome(failure=Failure.AGENT_ERROR, detail=text, session_lost=True)
        if end is None:
            return outcome_of_exit(decode_signal(exit_), ended=False, tail=text)
        if end.data.get("ok") is not True or any(one.data.get("gave_up") for one in events):
            return _classify_failed_end(exit_, events, tail)
        if end.data.get("asked") is not True:
            return Outcome(failure=Failure.CONTEXT_TOO_LONG, detail=_MODEL_NOT_ASKED)
        return outcome_of_exit(exit_, ended=True, tail=text)


ADAPTER: Adapter = GeminiAdapter()


def _build_arguments(request: TurnRequest) -> Iterator[str]:
    if request.only_reads:
        yield from ("--approval-mode", "plan")
    elif not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it accepts only one
        yield "--yolo"
    if request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield model_flag(request)


# --- output ----------------------------------------------------------------------------------------------


def _parse_fields(fields: dict[str, Any]) -> Iterable[AgentEvent]:
    match fields.get("type"):
        case "init":
            return session_events(fields.get("session_id"))
        case "message" if fields.get("role") == "assistant":
            data = {"delta": True} if fields.get("delta") is True else {}  # the next piece continues the text
            return (AgentEvent(kind="message", text=as_str(fields.get("content")), data=data),)
        case "message":
            return ()  # our own prompt
        case "tool_use":
            return (call_started(fields.get("tool_id"), fields.get("tool_name"), fields.get("parameters")),)
        case "tool_result":
            # It reports success even for a command that failed, and no exit code.
            output = as_str(fields.get("output")) or as_str(as_dict(fields.get("error")).get("message"))
            return (call_finished(fields.get("tool_id"), output, ok=fields.get("status") == "success"),)
        case "error":
            # After such a line it continues, or reports success although it gave up.
            text = as_str(fields.get("message"))
            return (error_event(text, Failure.AGENT_ERROR, gave_up=text in _GAVE_UP),)
        case "result":
            return _parse_result(fields)
        case _:
            return RAW


def _parse_result(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    stats = as_dict(fields.get("stats"))
    # The figures cover this process alone, resumed or not. Thinking is part of the total, and of none of its parts.
    total, output = as_count(stats.get("total_tokens")), as_count(stats.get("output_tokens"))
    tokens_input = as_count(stats.get("input_tokens"))
    usage = Usage(
        tokens_input=tokens_input,
        tokens_output=max(output, total - tokens_input),
        tokens_cached=as_count(stats.get("cached")),
    )
    data = {"model": next(iter(as_dict(stats.get("models"))), "")}
    yield AgentEvent("usage", data=data, usage=usage, scope=Scope.TURN)
    is_ok = fields.get("status") == "success"
    message = as_str(as_dict(fields.get("error")).get("message"))
    if message and not is_ok:
        yield _parse_error(message, as_str(fields.get("timestamp")))
    yield AgentEvent("end", data={"ok": is_ok, "asked": bool(as_dict(stats.get("models")))})


# --- errors ----------------------------------------------------------------------------------------------

_AUTHENTICATION_EXIT = 41
_INPUT_EXIT = 42
# It exits with the provider's status, and the kernel keeps its low eight bits.
_STATUSES = {one & 0xFF: one for one in (400, 401, 402, 403, 404, 408, 413, 429, 499, 500, 502, 503, 504, 529)}
_BAD_REQUEST, _FORBIDDEN = 400, 403
_GAVE_UP = {"Loop detected, stopping execution", "Maximum session turns exceeded"}
_MODEL_NOT_ASKED = "it reported success without asking the model: the conversation is too long for the model"
_SESSION_LOST = re.compile(r"^Error resuming session:", re.MULTILINE)
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
_RETRY_DELAY = re.compile(
    r"(?:retry (?:after|in)|resets? (?:after|in)) ((?:[\d.]{1,12}(?:ms|d|h|m|s) ?){1,5})", re.IGNORECASE
)


def _parse_error(message: str, timestamp: str) -> AgentEvent:
    """The CLI wraps the provider's message, and sometimes the whole JSON of its error: `[API Error: {…}]`."""
    text = message.removeprefix("[API Error: ")
    error = as_dict((parse_object(text.rpartition("]")[0].encode()) or {}).get("error"))
    text = as_str(error.get("message")) or message
    status = as_count(error.get("code"))
    failure = _find_failure(status, text) or Failure.AGENT_ERROR
    return error_event(" ".join(text.split()), failure, status=status, resets_at=_find_reset(text, timestamp))


def _find_failure(status: int, text: str) -> Failure | None:
    """None if neither the status nor the text is specific."""
    if not status and _BROKEN.search(text):
        return Failure.CONNECTIVITY
    if status in {0, _BAD_REQUEST}:
        return failure_of_text(text, _TEXTS)
    if status == _FORBIDDEN and _BILLING.search(text):
        return Failure.BILLING
    return failure_of_status(status)


def _classify_failed_end(exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
    error = last_event(events, "error") or AgentEvent(kind="error", text=find_error_line(tail))
    status = error.data.get("status") or _STATUSES.get(exit_.code or 0, 0)
    report = _REPORT.search(tail)
    failure = _find_failure(status, error.text) or _ERRORS.get(report[1] if report else "", Failure.AGENT_ERROR)
    return outcome_of_event(AgentEvent(kind="error", text=error.text, data={**error.data, "class": str(failure)}))


def _find_reset(text: str, timestamp: str) -> int | None:
    """When to retry: the text gives a delay, the line the time that it counts from."""
    delay = _RETRY_DELAY.search(text)
    if delay is None:
        return None
    try:
        at = datetime.fromisoformat(timestamp).timestamp()
    except (ValueError, OverflowError):
        return None
    return round(at * 1000) + parse_duration_ms(delay[1])
