"""The adapter of Claude Code (`claude -p`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/claude/ has its lines.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING, Any

from jackline.agents import claude_compaction, claude_errors, claude_hooks, claude_lines, launching, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PASSES = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "API_TIMEOUT_MS",
    "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "NO_PROXY", "no_proxy",
)  # fmt: skip
# The keys to a whole account are for nobody who does not use them.
_PASSES_IF = {
    "CLAUDE_CODE_USE_BEDROCK": (
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
    "CLAUDE_CODE_USE_VERTEX": (
        "CLAUDE_CODE_SKIP_VERTEX_AUTH", "CLOUD_ML_REGION", "VERTEX_REGION_*", "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT",
    ),
}  # fmt: skip
DECLARATION = Declaration(
    name="claude",
    binary="claude",
    gate="enforced",
    gate_reason="before every tool call a hook asks jackline, and blocks the call if nobody answers",
    chooses_session=True,
    resumes=True,
    forks=True,
    cost=True,
    minimum=(2, 1, 295),
    install="npm install -g @anthropic-ai/claude-code",
    passes=_PASSES,
    passes_if=_PASSES_IF,
    efforts=("low", "medium", "high", "xhigh", "max"),
    door="http",
    compacts=True,
    mcp=True,
)
# The first two keep the process alive long after the turn; the third goes on in a folder that nobody looks into.
_DISALLOWED = ("CronCreate", "ScheduleWakeup", "EnterWorktree")
_TOKEN = "JACKLINE_GATE_TOKEN"  # noqa: S105 - the name of the variable, which no file and no command line can hold
_REFUSED = {
    "--bare": "it drops the settings of the run",
    "--safe-mode": "it drops the settings of the run",
    "--settings": "it would take the place of the run's own, and no call would ask the gate",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--no-session-persistence": "such a session cannot be resumed",
    "--session-id": "jackline chooses the session",
    "--resume": launching.OWN_SESSION,
    "-r": launching.OWN_SESSION,
    "--continue": launching.OWN_SESSION,
    "-c": launching.OWN_SESSION,
    "--fork-session": launching.OWN_SESSION,
    "--bg": "it would go on where nobody sees it",
    "--background": "it would go on where nobody sees it",
}


class Claude:
    """Claude Code."""

    declaration = DECLARATION
    hooks = claude_hooks.HOOKS
    compaction = claude_compaction.COMPACTION

    def launch(self, request: TurnRequest) -> Launch:
        launching.refuse(DECLARATION.name, request.arguments, _REFUSED)
        settings = os.path.join(request.folder, "claude-settings.json")
        # No tool is allowed here: the gate allows each call. Without its hooks nothing would run that changes things.
        argv = (
            request.binary or DECLARATION.binary, "-p", "--output-format", "stream-json", "--verbose",
            "--settings", settings, *_servers(request), "--disallowedTools", ",".join(_DISALLOWED),
            *_session(request), *_choices(request), *request.arguments,
        )  # fmt: skip
        return Launch(
            argv=argv,
            env=_environment(request),
            files={settings: json.dumps(_settings(request)).encode(), **_server_file(request)},
            stdin=launching.prompt(request),  # none at all lets a resumed session go on with the call that waits
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return reading.parsed(line, claude_lines.heard)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return claude_errors.classify(exit_, heard, tail)


ADAPTER: Adapter = Claude()


def _servers(request: TurnRequest) -> tuple[str, ...]:
    """The file that names our server; those of the user's own stay."""
    return ("--mcp-config", *_server_file(request)) if request.mcp else ()


def _server_file(request: TurnRequest) -> dict[str, bytes]:
    if request.mcp is None:
        return {}
    fields = {"mcpServers": launching.mcp_servers(request.mcp)}
    return {os.path.join(request.folder, "claude-mcp.json"): json.dumps(fields).encode()}


def _settings(request: TurnRequest) -> dict[str, Any]:
    return claude_hooks.settings(request.gate, _TOKEN, request.reminder)


def _session(request: TurnRequest) -> tuple[str, ...]:
    if request.fork_of:
        new = ("--session-id", request.session) if request.session else ()
        return ("--resume", request.fork_of, "--fork-session", *new)
    if not request.session:
        return ()
    return ("--resume" if request.resume else "--session-id", request.session)


def _choices(request: TurnRequest) -> Iterator[str]:
    if request.model:
        yield launching.model(request)
    if request.effort:
        yield from ("--effort", request.effort)
    # The CLI counts what this process spends, not the session. A limit that the user passed on wins if it comes last.
    if request.usd_micros_left is not None:
        yield from ("--max-budget-usd", f"{request.usd_micros_left / 1_000_000:.6f}")


def _environment(request: TurnRequest) -> dict[str, str]:
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # Ten by default, which is minutes of silence: we park the run and try again ourselves.
        "CLAUDE_CODE_MAX_RETRIES": request.environ.get("CLAUDE_CODE_MAX_RETRIES", "3"),
        # Whatever a person lets pass: these two would switch the hooks off.
        "CLAUDE_CODE_SIMPLE": "0",
        "CLAUDE_CODE_SAFE_MODE": "0",
        _TOKEN: request.token,
        **_unproxied(request.environ),
    }


def _unproxied(environ: Mapping[str, str]) -> dict[str, str]:
    """The gate is on this machine: a proxy would not find it, and every call would be blocked."""
    names = ("no_proxy", "NO_PROXY")
    known = next((environ[name] for name in names if environ.get(name)), "")
    return dict.fromkeys(names, f"{known},127.0.0.1" if known else "127.0.0.1")
