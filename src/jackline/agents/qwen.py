"""The adapter of Qwen Code (`qwen -o stream-json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/qwen/ has its lines.
"""

from __future__ import annotations

import json
import os.path
from typing import TYPE_CHECKING, Any

from jackline.agents import launching, node, qwen_errors, qwen_lines, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFAULTS_PATH, _SETTINGS_PATH = "QWEN_CODE_SYSTEM_DEFAULTS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH"
DECLARATION = Declaration(
    name="qwen",
    binary="qwen",
    gate="advisory",
    gate_reason="it tells its calls when they begin and asks nobody: they are written down, and not held back",
    chooses_session=True,
    resumes=True,
    forks=True,
    minimum=(0, 24, 4),
    install="npm install -g @qwen-code/qwen-code  (needs Node 22)",
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
    mcp_reason=f"not where {_DEFAULTS_PATH} is set: there it would stand",
)  # fmt: skip
_LAUNCHERS = {"cli-entry.js": "cli.js"}
# Defaults and not settings: what the user or an administrator chose themselves stays as they chose it.
_DEFAULTS = {
    "general": {"enableAutoUpdate": False},
    # Each of these is a further conversation with the model, with tools, after the turn is done.
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
    # Three layers of retries multiply; this switches two of them off, and the third cannot be told.
    "model": {"generationConfig": {"maxRetries": 0}},
}
_OWN_PROMPT = "the prompt comes on stdin"
_REFUSED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "--input-format": "the prompt comes as text on stdin",
    "--input-file": _OWN_PROMPT,
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "-r": launching.OWN_SESSION,
    "--resume": launching.OWN_SESSION,
    "-c": launching.OWN_SESSION,
    "--continue": launching.OWN_SESSION,
    "--session-id": launching.OWN_SESSION,
    "--fork-session": launching.OWN_SESSION,
    "--worktree": "it would go on in a folder that nobody looks into",
}


class Qwen:
    """Qwen Code."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        launching.refuse(DECLARATION.name, request.arguments, _REFUSED)
        # Its launcher lets it collect garbage when memory runs short, by this option of node.
        start = node.program(request.binary or DECLARATION.binary, _LAUNCHERS, "--expose-gc")
        named = _files(request)
        return Launch(
            argv=(*start, "--output-format", "stream-json", *_choices(request), *request.arguments),
            env={
                **node.ENVIRONMENT,
                "QWEN_CODE_NO_RELAUNCH": "true",
                "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
                "QWEN_TELEMETRY_ENABLED": "false",
                "QWEN_USAGE_STATISTICS_ENABLED": "false",
                **{variable: file for variable, (file, _) in named.items()},
            },
            files=dict(named.values()),
            stdin=node.prompt(DECLARATION.name, request),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return reading.parsed(line, qwen_lines.heard)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return qwen_errors.classify(exit_, heard, tail)


ADAPTER: Adapter = Qwen()


def _choices(request: TurnRequest) -> Iterator[str]:
    if not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it takes one of the two
        yield "--yolo"
    if request.fork_of:
        yield from ("--resume", request.fork_of, "--fork-session")  # it chooses the new id itself, and tells it first
    elif request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield launching.model(request)


def _files(request: TurnRequest) -> dict[str, tuple[str, bytes]]:
    """By the variable that names each: the file and what is in it."""
    wanted: dict[str, tuple[str, Any]] = {
        # The user sent it into this folder to work there: it must not fall back to asking.
        "QWEN_CODE_TRUSTED_FOLDERS_PATH": ("qwen-trusted.json", {request.workspace: "TRUST_FOLDER"}),
    }
    if _DEFAULTS_PATH not in request.environ:
        # Servers of several files are put together, by their names.
        servers = {"mcpServers": launching.mcp_servers(request.mcp)} if request.mcp else {}
        wanted[_DEFAULTS_PATH] = ("qwen-defaults.json", {**_DEFAULTS, **servers})
    if request.effort:  # there is no flag for it, and it must win over the user's own
        wanted[_SETTINGS_PATH] = ("qwen-settings.json", {"model": {"reasoningEffort": request.effort}})
    return {
        variable: (os.path.join(request.folder, name), json.dumps(fields).encode())
        for variable, (name, fields) in wanted.items()
    }
