"""The adapter of the scripted agent, which plays a script instead of asking a model. Pure, like every adapter.

The program that plays is scripted_player.py; script_format.py validates a script.
"""

from __future__ import annotations

import os.path
import sys

from jackline.agents import agent_events
from jackline.agents.cli_args import encode_prompt, helper_env
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome

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


class ScriptedAdapter:
    """The scripted agent."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        script = os.path.join(request.folder, "script.json")
        return Launch(
            argv=(request.binary or sys.executable, "-I", PLAYER),
            env={**helper_env(request), "JACKLINE_SCRIPT": script},
            files={script: request.options.get("script", "").encode("utf-8", "surrogatepass")},
            stdin=encode_prompt(request),
        )

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return agent_events.parse_event_line(line)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        return agent_events.classify_by_events(exit_, events, tail)


ADAPTER: Adapter = ScriptedAdapter()
