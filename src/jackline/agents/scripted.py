"""The adapter of the scripted agent, which needs no model: it plays a script. Pure, like every adapter.

The program that plays is scripted_player.py; what a script may say is in scripted_format.py.
"""

from __future__ import annotations

import os.path
import sys

from jackline.agents import helper, launching, lines
from jackline.agents.scripted_format import validate
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome

__all__ = ["ADAPTER", "PLAYER", "Scripted", "validate"]

PLAYER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_player.py")
DECLARATION = Declaration(
    name="scripted",
    binary=sys.executable,
    gate="enforced",
    gate_reason="it asks the gate before every call, and runs nothing without an answer",
    chooses_session=True,
    resumes=True,
    version_arguments=(),
    cost=True,
)


class Scripted:
    """The scripted agent."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        script = os.path.join(request.folder, "script.json")
        return Launch(
            argv=(request.binary or sys.executable, "-I", PLAYER),
            env={**helper.environment(request), "JACKLINE_SCRIPT": script},
            files={script: request.options.get("script", "").encode("utf-8", "surrogatepass")},
            stdin=launching.prompt(request),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        return lines.parse(line)

    def classify(self, exit_: Exit, heard: tuple[Heard, ...], tail: str) -> Outcome:
        return lines.classify(exit_, heard, tail)


ADAPTER: Adapter = Scripted()
