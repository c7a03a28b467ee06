"""The adapter of the scripted agent, which plays a script instead of asking a model. Pure, like every adapter.

The program that plays is scripted_player.py; script_format.py validates a script.
"""

from __future__ import annotations

import os.path
import sys

from jackline.agents.agent_events import classify_by_events, parse_event_line
from jackline.agents.cli_args import encode_prompt, helper_env
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest

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
    live_usage=True,
)


class ScriptedAdapter:
    """The scripted agent."""

    declaration = DECLARATION
    parse = staticmethod(parse_event_line)
    classify = staticmethod(classify_by_events)

    def launch(self, request: TurnRequest) -> Launch:
        script = os.path.join(request.folder, "script.json")
        return Launch(
            argv=(request.binary or sys.executable, "-I", PLAYER),
            env={**helper_env(request), "JACKLINE_SCRIPT": script},
            files={script: request.options.get("script", "").encode("utf-8", "surrogatepass")},
            stdin=encode_prompt(request),
        )


ADAPTER: Adapter = ScriptedAdapter()
