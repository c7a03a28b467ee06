"""The adapter of ollama: jackline's own tool loop around a model on an ollama server. Pure.

The program that talks to the server is helpers/ollama_loop.py; ollama need not be installed on this host.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from jackline.agents.agent_events import classify_by_events, parse_event_line
from jackline.agents.cli_args import encode_prompt, helper_argv, helper_env
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.errors import UsageError

DECLARATION = Declaration(
    name="ollama",
    binary=sys.executable,
    gate="enforced",
    gate_reason="jackline runs the tools itself, and only after the gate has allowed the call",
    chooses_session=True,
    resumes=True,
    live_usage=True,
    version_arguments=(),
    passes=("OLLAMA_HOST", "OLLAMA_API_KEY"),
    model_variables=("OLLAMA_MODEL",),
    efforts=("off", "on", "low", "medium", "high"),
)


class OllamaAdapter:
    """A model on an ollama server, with shell and file tools."""

    declaration = DECLARATION
    parse = staticmethod(parse_event_line)
    classify = staticmethod(classify_by_events)
    serves = "ollama serve"  # the command that starts its server

    def launch(self, request: TurnRequest) -> Launch:
        return Launch(
            argv=helper_argv(request, "ollama", *request.arguments),
            env=helper_env(request),
            stdin=encode_prompt(request),
        )

    def address(self, environ: Mapping[str, str]) -> tuple[str, int]:
        """Host and port of its server; UsageError if OLLAMA_HOST is invalid."""
        from jackline.agents.helpers.ollama_address import parse_host_and_port

        try:
            return parse_host_and_port(environ.get("OLLAMA_HOST", ""))
        except ValueError as error:
            raise UsageError(str(error)) from None


ADAPTER: Adapter = OllamaAdapter()
