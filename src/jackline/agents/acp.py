"""The adapter of every agent that speaks ACP, the Agent Client Protocol. Pure; the client is talking/acp.py.

Its command stands after `--`, or in a described agent's `acp = […]`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from jackline.agents import helper, launching, lines
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.errors import UsageError

GATE_REASON = "an ACP agent asks only before the calls that it thinks dangerous, and some ask for none"
# Else qwen asks the model before its servers are there, and knows none of their tools. Others do not know the variable.
_QWEN_WAITS = "QWEN_CODE_LEGACY_MCP_BLOCKING"
DECLARATION = Declaration(
    name="acp",
    binary=sys.executable,
    gate="advisory",
    gate_reason=GATE_REASON,
    chooses_session=False,
    resumes=True,
    cost=True,
    version_arguments=(),
    is_named_by_arguments=True,
    passes=(
        "ANTHROPIC_*", "CLAUDE_*", "CODEX_*", "COPILOT_*", "GEMINI_*", "KILO_*", "OLLAMA_*", "OPENCODE_*", "QWEN_*",
        "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL",
        "OPENAI_MODEL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT",
    ),  # which of them it is, is only known when its command is
    passes_if={"GOOGLE_GENAI_USE_VERTEXAI": ("GOOGLE_APPLICATION_CREDENTIALS",)},
    mcp=True,
)  # fmt: skip


class Acp:
    """Whatever agent is written after `--`."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        if not request.arguments:
            raise UsageError("which agent? write its command after --: `jackline run … --agent acp -- gemini --acp`")
        return launch(request, request.arguments)

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return lines.parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return lines.classify(exit_, heard, tail)


ADAPTER: Adapter = Acp()


def launch(request: TurnRequest, words: Sequence[str]) -> Launch:
    """The client, with the agent's own command line behind it."""
    env = {**helper.environment(request), **_servers(request)}
    return Launch(helper.command(request, "acp", *words), env, stdin=launching.prompt(request))


def _servers(request: TurnRequest) -> dict[str, str]:
    """Our server in the words of the protocol."""
    if request.mcp is None:
        return {}
    program, *arguments = request.mcp.argv
    env = [{"name": name, "value": value} for name, value in request.mcp.env.items()]
    server = {"name": request.mcp.name, "command": program, "args": arguments, "env": env}
    waits = {} if _QWEN_WAITS in request.environ else {_QWEN_WAITS: "1"}
    return {"JACKLINE_MCP_SERVERS": json.dumps([server]), **waits}
