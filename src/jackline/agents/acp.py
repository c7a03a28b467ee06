"""The adapter of any agent that speaks ACP, the Agent Client Protocol. Pure; the client is helpers/acp_client.py.

The agent's command comes after `--`, or from `acp = […]` of an agent in TOML.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from jackline.agents.agent_events import classify_by_events, parse_event_line
from jackline.agents.cli_args import encode_prompt, helper_argv, helper_env
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.errors import UsageError

GATE_REASON = "an ACP agent asks only before calls that it considers dangerous, and some agents never ask"
# Otherwise qwen asks the model before its servers are up, without their tools. Other agents ignore the variable.
_QWEN_BLOCKING = "QWEN_CODE_LEGACY_MCP_BLOCKING"
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
    ),  # the agent is known only with its command
    passes_if={"GOOGLE_GENAI_USE_VERTEXAI": ("GOOGLE_APPLICATION_CREDENTIALS",)},
    mcp=True,
)  # fmt: skip


class AcpAdapter:
    """The agent whose command comes after `--`."""

    declaration = DECLARATION
    parse = staticmethod(parse_event_line)
    classify = staticmethod(classify_by_events)

    def launch(self, request: TurnRequest) -> Launch:
        if not request.arguments:
            raise UsageError("no agent command given; write it after --: `jackline run … --agent acp -- gemini --acp`")
        return launch(request, request.arguments)


ADAPTER: Adapter = AcpAdapter()


def launch(request: TurnRequest, words: Sequence[str]) -> Launch:
    """Launch the client with the agent's command line `words`, and our MCP server in the JSON of the protocol."""
    env = helper_env(request)
    if request.mcp is not None:
        program, *arguments = request.mcp.argv
        variables = [{"name": name, "value": value} for name, value in request.mcp.env.items()]
        server = {"name": request.mcp.name, "command": program, "args": arguments, "env": variables}
        env["JACKLINE_MCP_SERVERS"] = json.dumps([server])
        if _QWEN_BLOCKING not in request.environ:
            env[_QWEN_BLOCKING] = "1"
    return Launch(argv=helper_argv(request, "acp", *words), env=env, stdin=encode_prompt(request))
