"""The adapter of Gemini CLI (`gemini -o stream-json`). Pure, like every adapter: it starts nothing and reads no file.

What it says of the CLI was seen with the real one; tests/agents/recorded/gemini/ has its lines.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline.agents import gemini_errors, gemini_lines, launching, node, reading
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFAULTS_PATH = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
DECLARATION = Declaration(
    name="gemini",
    binary="gemini",
    gate="advisory",
    gate_reason="it tells its calls when they begin and asks nobody: they are written down, and not held back",
    chooses_session=True,
    resumes=True,
    minimum=(0, 61, 0),
    install="npm install -g @google/gemini-cli",
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
    mcp_reason=f"only for root, and not where {_DEFAULTS_PATH} is set: in no other file would yours be left alone",
)  # fmt: skip
# Defaults and not settings: what the user or an administrator chose themselves stays as they chose it.
_DEFAULTS = {
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "maxAttempts": 2,  # ten by default, which is minutes of silence: we park the run and try again ourselves
        "retryFetchErrors": False,
    },
    "privacy": {"usageStatisticsEnabled": False},
}
_OWN_PROMPT = "the prompt comes on stdin"
_REFUSED = {
    "-o": "jackline reads stream-json",
    "--output-format": "jackline reads stream-json",
    "-p": _OWN_PROMPT,
    "--prompt": _OWN_PROMPT,
    "-i": _OWN_PROMPT,
    "--prompt-interactive": _OWN_PROMPT,
    "--acp": "use the agent acp for it",
    "--experimental-acp": "use the agent acp for it",
    "-r": launching.OWN_SESSION,
    "--resume": launching.OWN_SESSION,
    "--session-id": launching.OWN_SESSION,
    "--session-file": launching.OWN_SESSION,
    "-w": "it would go on in a folder that nobody looks into",
    "--worktree": "it would go on in a folder that nobody looks into",
}


class Gemini:
    """Gemini CLI."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        launching.refuse(DECLARATION.name, request.arguments, _REFUSED)
        argv = (
            *node.program(request.binary or DECLARATION.binary, {}), "--output-format", "stream-json", "--skip-trust",
            *_choices(request), *request.arguments,
        )  # fmt: skip
        env = {**node.ENVIRONMENT, "GEMINI_CLI_NO_RELAUNCH": "true", "GEMINI_TELEMETRY_ENABLED": "false"}
        defaults = os.path.join(request.folder, "gemini-defaults.json")
        stdin = node.prompt(DECLARATION.name, request)
        # It reads such a file only where root alone can write, and would complain about any other at every start.
        if os.geteuid() != 0 or _DEFAULTS_PATH in request.environ:
            return Launch(argv, env, {}, stdin)
        # Servers of several files are put together, by their names.
        servers = {"mcpServers": launching.mcp_servers(request.mcp)} if request.mcp else {}
        fields = {**_DEFAULTS, **servers}
        return Launch(argv, {**env, _DEFAULTS_PATH: defaults}, {defaults: json.dumps(fields).encode()}, stdin)

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return reading.parsed(line, gemini_lines.heard)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return gemini_errors.classify(exit_, heard, tail)


ADAPTER: Adapter = Gemini()


def _choices(request: TurnRequest) -> Iterator[str]:
    if not any(one.partition("=")[0] == "--approval-mode" for one in request.arguments):  # it takes one of the two
        yield "--yolo"
    if request.session:
        yield from ("--resume" if request.resume else "--session-id", request.session)
    if request.model:
        yield launching.model(request)
