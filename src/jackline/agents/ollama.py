"""The adapter of ollama: jackline's own tool loop around a model that an ollama server runs. Pure.

The program that talks to the server is in talking/ollama.py; there need not be an ollama on this host.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from jackline.agents import helper, launching, lines
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome
from jackline.errors import UsageError

DECLARATION = Declaration(
    name="ollama",
    binary=sys.executable,
    gate="enforced",
    gate_reason="jackline runs the tools itself, and none of them before the gate has allowed it",
    chooses_session=True,
    resumes=True,
    version_arguments=(),
    passes=("OLLAMA_HOST", "OLLAMA_API_KEY"),
    model_variables=("OLLAMA_MODEL",),
    efforts=("off", "on", "low", "medium", "high"),
)


class Ollama:
    """A model of an ollama server, with a shell and files."""

    declaration = DECLARATION
    serves = "ollama serve"  # what starts the server that it needs

    def launch(self, request: TurnRequest) -> Launch:
        return Launch(
            argv=helper.command(request, "ollama", *request.arguments),
            env=helper.environment(request),
            stdin=launching.prompt(request),
        )

    def address(self, environ: Mapping[str, str]) -> tuple[str, int]:
        """Host and port of the server that it needs; UsageError if OLLAMA_HOST names none."""
        from jackline.agents.talking.address import host_and_port

        try:
            return host_and_port(environ.get("OLLAMA_HOST", ""))
        except ValueError as error:
            raise UsageError(str(error)) from None

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return lines.parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return lines.classify(exit_, heard, tail)


ADAPTER: Adapter = Ollama()
