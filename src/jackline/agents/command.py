"""Any command line as an agent: the prompt on standard input, the output as message, the exit code as outcome. Pure.

A custom agent may print jackline's event lines (agent_events.py) among its text, and ask the gate.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from jackline.agents import agent_events
from jackline.agents.cli_args import encode_prompt, helper_env
from jackline.agents.json_fields import RAW
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.domain.states import Failure
from jackline.errors import UsageError

DECLARATION = Declaration(
    name="command",
    binary=sys.executable,  # never started: the command comes with each run
    gate="advisory",
    gate_reason="jackline cannot hold back a command, unless the command asks the gate itself",
    chooses_session=True,  # for {session}: a command can keep separate files for each run
    resumes=False,
    structured=False,
    tokens=False,
    version_arguments=(),
    is_named_by_arguments=True,
)
_PLACEHOLDER = re.compile(r"\{(prompt|workspace|session|model|folder)\}")


class CommandAdapter:
    """The command line after `--`."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        if not request.arguments:
            raise UsageError("no command given; write it after --: `jackline run PROMPT --agent command -- ./agent.sh`")
        return launch(request, request.arguments)

    def parse(self, line: bytes) -> tuple[AgentEvent, ...]:
        return parse(line)

    def classify(self, exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
        return classify(exit_, events, tail)


ADAPTER: Adapter = CommandAdapter()


def launch(request: TurnRequest, words: Sequence[str]) -> Launch:
    """Fill the placeholders of the words; the prompt goes to standard input unless a word has {prompt}."""
    values = {
        "prompt": request.prompt,
        "workspace": request.workspace,
        "session": request.session or "",
        "model": request.model,
        "folder": request.folder,
    }
    # In one pass: an inserted value must not be read as a placeholder.
    argv = tuple(_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in words)
    stdin = None if any("{prompt}" in word for word in words) else encode_prompt(request)
    return Launch(argv=argv, env=helper_env(request), stdin=stdin)


def parse(line: bytes) -> tuple[AgentEvent, ...]:
    """Parse an event line; any other line belongs to a message."""
    events = agent_events.parse_event_line(line)
    if events is not RAW:
        return events
    text = line.decode("utf-8", "replace").replace("\0", "\ufffd").rstrip()
    return (AgentEvent(kind="message", text=text, data={"line": True}),)  # the next line continues the text


def classify(exit_: Exit, events: tuple[AgentEvent, ...], tail: str) -> Outcome:
    """Event lines decide, then the exit code: a plain command prints no terminal event."""
    outcome = agent_events.classify_by_events(exit_, events, tail)
    return Outcome() if outcome.failure is Failure.NO_TERMINAL_EVENT else outcome
