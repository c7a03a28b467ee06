"""The adapter of Claude Code (`claude -p`). Pure, like every adapter: it starts nothing and reads no file.

Every statement about the CLI was observed with the real one; tests/agents/recorded/claude/ has its output.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING

from jackline.agents.claude import claude_output
from jackline.agents.claude.claude_hooks import COMPACTION, HOOKS, build_settings
from jackline.agents.claude.claude_project import PROJECT_FILES, build_project_launch
from jackline.agents.cli_args import OWN_SESSION, encode_prompt, mcp_servers, model_flag, reject_arguments
from jackline.agents.json_fields import parse_line
from jackline.domain.adapter import Adapter, Declaration, Launch, LoginFacts, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

_PASSES = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_SUBAGENT_MODEL", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "MAX_THINKING_TOKENS", "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "API_TIMEOUT_MS",
    "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "NO_PROXY", "no_proxy",
)  # fmt: skip
# The keys to a whole cloud account pass only if the agent uses that cloud.
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
    gate_reason="a hook asks jackline before every tool call, and blocks the call if it gets no answer",
    chooses_session=True,
    resumes=True,
    binds_sessions=True,
    forks=True,
    cost=True,
    live_usage=True,
    prices="claude",
    minimum=(2, 1, 295),
    install="npm install -g @anthropic-ai/claude-code",
    login=LoginFacts(
        command="run `claude auth login`",
        variables=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
            "ANTHROPIC_CUSTOM_HEADERS",
        ),
        home_variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        files=(".credentials.json",),
        status_arguments=("auth", "status"),
        project_files=(".claude/settings.json", ".claude/settings.local.json"),
        project_words=("apiKeyHelper",),
    ),
    passes=_PASSES,
    passes_if=_PASSES_IF,
    efforts=("low", "medium", "high", "xhigh", "max"),
    door="http",
    compacts=True,
    mcp=True,
    project_files=PROJECT_FILES,
    account_variables=(
        "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
    ),
)  # fmt: skip
# The first two keep the process alive long after the turn; the third moves the work to a folder outside the run.
_DISALLOWED = ("CronCreate", "ScheduleWakeup", "EnterWorktree")
_TOKEN = "JACKLINE_GATE_TOKEN"  # noqa: S105 - the name of the variable; its value is in no file and on no command line
_REJECTED = {
    "--bare": "it drops the settings of the run",
    "--safe-mode": "it drops the settings of the run",
    "--settings": "it would replace the settings of the run, and no call would ask the gate",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--no-session-persistence": "such a session cannot be resumed",
    "--session-id": "jackline chooses the session",
    "--resume": OWN_SESSION,
    "-r": OWN_SESSION,
    "--continue": OWN_SESSION,
    "-c": OWN_SESSION,
    "--fork-session": OWN_SESSION,
    "--bg": "it would continue outside the run",
    "--background": "it would continue outside the run",
}


class ClaudeAdapter:
    """Claude Code."""

    declaration = DECLARATION
    hooks = HOOKS
    compaction = COMPACTION

    def launch(self, request: TurnRequest) -> Launch:
        reject_arguments(DECLARATION.name, request.arguments, _REJECTED)
        project = build_project_launch(request, request.untrusted) if request.untrusted else None
        settings = os.path.join(request.folder, "claude-settings.json")
        fields = build_settings(request.gate, _TOKEN, request.reminder)
        if project and project.permissions:
            fields["permissions"] = project.permissions
        files = {settings: json.dumps(fields).encode(), **(project.files if project else {})}
        # Added to the user's own servers, which stay.
        added = {**(project.servers if project else {}), **mcp_servers(request.mcp)}
        servers: tuple[str, ...] = ()
        if added:
            config = os.path.join(request.folder, "claude-mcp.json")
            files[config] = json.dumps({"mcpServers": added}).encode()
            servers = ("--mcp-config", config)
        # No tool is allowed here: the gate allows each call. Without its hooks, nothing that changes files could run.
        argv = (
            request.binary or DECLARATION.binary, "-p", "--output-format", "stream-json", "--verbose",
            "--settings", settings, *servers, *(project.arguments if project else ()),
            "--disallowedTools", ",".join(_DISALLOWED),
            *_build_arguments(request), *request.arguments,
        )  # fmt: skip
        # An empty prompt lets a resumed session continue with its deferred call.
        env = {**_build_env(request), **(project.env if project else {})}
        return Launch(argv=argv, env=env, files=files, stdin=encode_prompt(request))

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse_line(line, claude_output.parse_fields)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        return claude_output.classify(exit_, events, tail)


ADAPTER: Adapter = ClaudeAdapter()


def _build_arguments(request: TurnRequest) -> Iterator[str]:
    if request.fork_of:
        yield from ("--resume", request.fork_of, "--fork-session")
    if request.session:
        yield from ("--resume" if request.resume and not request.fork_of else "--session-id", request.session)
    if request.model:
        yield model_flag(request)
    if request.effort:
        yield from ("--effort", request.effort)
    # The CLI counts what this process spends, not the session. A limit that the user passed on wins if it comes last.
    if request.usd_micros_left is not None:
        yield from ("--max-budget-usd", f"{request.usd_micros_left / 1_000_000:.6f}")


def _build_env(request: TurnRequest) -> dict[str, str]:
    # The gate is on this machine: through a proxy it would be unreachable, and every call would be blocked.
    no_proxy = next((request.environ[name] for name in ("no_proxy", "NO_PROXY") if request.environ.get(name)), "")
    no_proxy = f"{no_proxy},127.0.0.1" if no_proxy else "127.0.0.1"
    return {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # The default of ten means minutes of silence; jackline parks the run and retries by itself.
        "CLAUDE_CODE_MAX_RETRIES": request.environ.get("CLAUDE_CODE_MAX_RETRIES", "3"),
        # Set even if the user passes them: these two would switch the hooks off.
        "CLAUDE_CODE_SIMPLE": "0",
        "CLAUDE_CODE_SAFE_MODE": "0",
        _TOKEN: request.token,
        "no_proxy": no_proxy,
        "NO_PROXY": no_proxy,
    }
