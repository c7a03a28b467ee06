"""Qwen Code (`qwen -o stream-json`): how it is launched, and what its output means. Starts nothing, reads no file.

Its output is similar to Claude Code's. Every statement about the CLI was observed with the real one;
tests/agents/recorded/qwen/ has its output.
"""

from __future__ import annotations

import json
import os.path
import re
from typing import TYPE_CHECKING, Any

from jackline.agents.agent_events import error_event, retry_event, session_events
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
from jackline.agents.json_fields import RAW, as_count, as_dict, as_str, parse_line
from jackline.agents.message_blocks import parse_message, parse_results
from jackline.agents.outcomes import (
    decode_signal,
    failure_of_status,
    failure_of_text,
    last_event,
    last_line,
    outcome_of_event,
    outcome_of_exit,
)
from jackline.domain.adapter import Adapter, Declaration, Launch, LoginFacts, ProjectFiles, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_DEFAULTS_PATH, _SETTINGS_PATH = "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_CREDENTIALS = (
    "OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "BAILIAN_TOKEN_PLAN_API_KEY",
    "MODELSCOPE_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "QWEN_API_KEY",
    "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY", "MINIMAX_API_KEY", "ZAI_API_KEY",
    "XAI_API_KEY", "REQUESTY_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI",
)  # fmt: skip
DECLARATION = Declaration(
    name="qwen",
    binary="qwen",
    gate="advisory",
    gate_reason="it reports calls when they start and asks no gate: calls are recorded, not held back",
    chooses_session=True,
    resumes=True,
    binds_sessions=True,
    forks=True,
    live_usage=True,
    prices="qwen",
    minimum=(0, 24, 4),
    install="npm install -g @qwen-code/qwen-code  # needs Node 22",
    login=LoginFacts(
        command="run `qwen` once and type /auth, or set OPENAI_API_KEY",
        variables=_CREDENTIALS,
        home_variable="QWEN_HOME",
        folder=".qwen",
        files=("oauth_creds.json", ".env", "settings.json"),  # the settings may hold a key
        project_files=(".env", ".qwen/.env", ".qwen/settings.json"),
        project_words=("selectedType", "apiKey"),
    ),
    switches_off={"--yolo": "its questions before a call"},
    read_only="its plan mode, which has no shell",
    passes=(
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY", "DASHSCOPE_PROXY_BASE_URL",
        "BAILIAN_CODING_PLAN_API_KEY", "BAILIAN_TOKEN_PLAN_API_KEY", "MODELSCOPE_API_KEY", "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "GEMINI_API_KEY", "GEMINI_MODEL", "GOOGLE_API_KEY", "GOOGLE_MODEL",
        "GOOGLE_GENAI_USE_VERTEXAI", "QWEN_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY",
        "MINIMAX_API_KEY", "ZAI_API_KEY", "XAI_API_KEY", "REQUESTY_API_KEY",
        "QWEN_HOME", "QWEN_RUNTIME_DIR", "QWEN_DEFAULT_AUTH_TYPE", "QWEN_TLS_INSECURE", "QWEN_SYSTEM_MD",
        "QWEN_CODE_MAX_OUTPUT_TOKENS", "QWEN_STREAM_IDLE_TIMEOUT_MS", "QWEN_STREAM_MAX_LIFETIME_MS",
        "QWEN_CODE_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
    ),
    passes_if={
        "GOOGLE_GENAI_USE_VERTEXAI": (
            "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
        ),
    },
    model_variables=("QWEN_MODEL",),
    efforts=("none", "low", "medium", "high", "xhigh", "max"),
    mcp=True,
    mcp_reason=f"not if {_DEFAULTS_PATH} is set, which would name it",
    project_files=ProjectFiles(
        settings=(".qwen", ".mcp.json", ".env"),
        texts=(".qwen/skills", ".qwen/QWEN.md", ".qwen/rules", ".agents/skills"),
        is_text=has_only_text,
    ),
    account_variables=("QWEN_HOME", "QWEN_RUNTIME_DIR", *_CREDENTIALS),
)  # fmt: skip
_LAUNCHERS = {"cli-entry.js": "cli.js"}
# Defaults, not settings: the choices of the user or an administrator stay.
_DEFAULTS = {
    "general": {"enableAutoUpdate": False},
    # Each of these starts another conversation with the model, with tools, after the turn.
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
    # Three layers of retries multiply; this switches off two of them, and the third cannot be configured.
    "model": {"generationConfig": {"maxRetries": 0}},
}
_OWN_PROMPT = "the prompt comes on stdin"
_REJECTED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--input-file": _OWN_PROMPT,
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "-r": OWN_SESSION,
    "--resume": OWN_SESSION,
    "-c": OWN_SESSION,
    "--continue": OWN_SESSION,
    "--session-id": OWN_SESSION,
    "--fork-session": OWN_SESSION,
    "--worktree": "it would work outside the workspace",
}


class QwenAdapter:
    """Qwen Code."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        reject_arguments(DECLARATION.name, request.arguments, _REJECTED)
        # As its launcher does: this option of node lets it collect garbage when memory runs short.
        start = node_argv(request.binary or DECLARATION.binary, _LAUNCHERS, "--expose-gc")
        files = _build_files(request)
        return Launch(
            argv=(*start, "--output-format", "stream-json", *_build_arguments(request), *list_node_arguments(request)),
            env={
                **node_env(request, DECLARATION),
                "QWEN_CODE_NO_RELAUNCH": "true",
                "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
                "QWEN_TELEMETRY_ENABLED": "false",
                "QWEN_USAGE_STATISTICS_ENABLED": "false",
                **{variable: file for variable, (file, _) in files.items()},
            },
            files=dict(files.values()),
            stdin=encode_node_prompt(DECLARATION.name, request),
        )

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse_line(line, _parse_fields)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        """The last result decides, then the exit, then the CLI's line on stderr; errors before a success are over."""
        end, error = last_event(events, "end"), last_event(events, "error")
        if end is not None and end.data.get("ok") is not True:
            return Outcome(Failure.AGENT_ERROR) if error is None else outcome_of_event(error)
        if end is None and _SESSION_LOST.search(tail):
            return Outcome(failure=Failure.AGENT_ERROR, detail=last_line(tail), session_lost=True)
        return outcome_of_exit(decode_signal(exit_), ended=end is not None, tail=find_error_line(tail))


ADAPTER: Adapter = QwenAdapter()


def _build_arguments(request: TurnRequest) -> Iterator[str]:
    if request.only_reads:
        yield from ("--approval-mode", "plan")
    elif not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it accepts only one
        yield "--yolo"
    if request.fork_of:
        yield from ("--resume", request.fork_of, "--fork-session")  # it chooses the new id itself, and reports it first
    elif request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield model_flag(request)


def _build_files(request: TurnRequest) -> dict[str, tuple[str, bytes]]:
    """Path and content of each file, by the variable that names it."""
    wanted: dict[str, tuple[str, Any]] = {
        # The user started it in this folder: it must not ask whether to trust it.
        "QWEN_CODE_TRUSTED_FOLDERS_PATH": ("qwen-trusted.json", {request.workspace: "TRUST_FOLDER"}),
    }
    if _DEFAULTS_PATH not in request.environ:
        # The CLI merges the servers of all its files by name.
        servers = {"mcpServers": mcp_servers(request.mcp)} if request.mcp else {}
        wanted[_DEFAULTS_PATH] = ("qwen-defaults.json", {**_DEFAULTS, **servers})
    if request.effort:  # there is no flag for it, and it must override the user's setting
        wanted[_SETTINGS_PATH] = ("qwen-settings.json", {"model": {"reasoningEffort": request.effort}})
    return {
        variable: (os.path.join(request.folder, name), json.dumps(fields).encode())
        for variable, (name, fields) in wanted.items()
    }


# --- output ----------------------------------------------------------------------------------------------

_EXIT_CODE = re.compile(r"^Exit Code: (\d{1,3})$", re.MULTILINE)


def _parse_fields(fields: dict[str, Any]) -> Iterable[AgentEvent]:
    match fields.get("type"):
        case "system" if fields.get("subtype") == "init":
            return session_events(fields.get("session_id"))
        case "system" if fields.get("subtype") == "retry":
            data = as_dict(fields.get("data"))
            return (retry_event(data.get("reason"), attempt=data.get("attempt"), delay_ms=data.get("delayMs")),)
        case "assistant":
            return _parse_assistant(fields)
        case "user":
            return parse_results(fields, _EXIT_CODE)
        case "result":
            return _parse_end(fields)
        case "system" | "stream_event":
            return ()  # the state of its goals, and pieces of messages that follow complete
        case _:
            return RAW


def _parse_assistant(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    yield from parse_message(fields)
    # The result's sum covers the whole session, so the messages are added up. The input includes cached tokens.
    message = as_dict(fields.get("message"))
    counts = as_dict(message.get("usage"))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens")
    usage = Usage(*(as_count(counts.get(name)) for name in names))
    data = {"model": as_str(message.get("model"))}
    yield AgentEvent("usage", data=data, usage=usage, scope=Scope.MESSAGE, message_id=as_str(message.get("id")))


def _parse_end(fields: Mapping[str, Any]) -> Iterator[AgentEvent]:
    is_ok = fields.get("is_error") is False
    if not is_ok:  # the CLI's own error line is all that it reports: `[API Error: 401 …]`
        text = as_str(as_dict(fields.get("error")).get("message")) or "it failed without giving a reason"
        yield error_event(" ".join(text.split()), _find_failure(text))
    yield AgentEvent("end", data={"ok": is_ok})


# --- errors ----------------------------------------------------------------------------------------------

_SESSION_LOST = re.compile(r"^No saved session found with ", re.MULTILINE)
_STATUS = re.compile(r"^\[API Error: (\d{3})\b|\(HTTP (\d{3})\)")
_BAD_REQUESTS = {400, 403}  # ambiguous: only the text tells which error it is
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


def _find_failure(text: str) -> Failure:
    found = _STATUS.search(text)
    status = int(found[1] or found[2]) if found else 0
    if not status and _BROKEN.search(text):
        return Failure.CONNECTIVITY
    if not status or status in _BAD_REQUESTS:
        failure = failure_of_text(text, _TEXTS)
        if failure is not None:
            return failure
    return failure_of_status(status)
