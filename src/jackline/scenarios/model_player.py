"""Plays a case with a real CLI: the user's program, its own HOME, and the packaged fake model behind it.

The model of a case tells its two lives apart by the resume prompt, not by counting requests: a CLI that has lost its
gate may ask once more before it dies, and must not use up a reply that is meant for the resume.
"""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jackline.app import agents
from jackline.domain.resume_prompt import RESUME_HEADING
from jackline.errors import AgentUnavailable, UsageError
from jackline.fake_model.pointing import point
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.scenarios.drill_cases import PROMPT
from jackline.scenarios.players import PlayerSetup
from jackline.scenarios.sandbox import make_temporary_folder, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.fake_model.wire import ModelRequest
    from jackline.scenarios.drill_cases import DrillCase, ToolStep
    from jackline.scenarios.sandbox import Sandbox

DRILL_AGENTS = ("scripted", "claude")  # a case needs an enforced gate
DEMO_AGENTS = ("claude", "codex", "gemini", "kilo", "opencode", "qwen")
SUBAGENT_TOOL = "Agent"
_TASK = re.compile(r"Run the task named (\w+)\.")
_REST = "the rest of the message, which never comes"  # a second call: the first must be complete in the first half


class ModelPlayer:
    """The user's own CLI with a played model."""

    def __init__(self, name: str, binary: str, version: str, gate: str, gate_reason: str) -> None:
        self.name, self.binary, self.version = name, binary, version
        self.gate, self.gate_reason = gate, gate_reason  # as its adapter declares them

    @contextmanager
    def prepare(self, case: DrillCase, sandbox: Sandbox) -> Iterator[PlayerSetup]:
        """Serve the case's model; its requests are kept as evidence."""
        policy = sandbox.at("policy.toml")
        write_text(policy, _render_command_policy(sandbox))
        with FakeModel(CaseModel(case, sandbox.repository), log=sandbox.at("asked.jsonl")) as model:
            yield PlayerSetup(("--policy", policy), self.connect(model, sandbox))

    def connect(self, model: FakeModel, sandbox: Sandbox) -> dict[str, str]:
        """Write the settings that make the CLI use the model, and give the additions to its environment."""
        pointed = point(self.name, model.address, sandbox.user)
        for path, content in pointed.files.items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        return {**pointed.env, f"JACKLINE_{self.name.upper()}_BINARY": self.binary}


def load_player(name: str, home: Home, scenario: str, supported: tuple[str, ...]) -> ModelPlayer:
    """Find the program that `jackline run` would start; AgentUnavailable says how to install it."""
    adapter = agents.load_adapter(home.config, name)
    if name not in supported:
        raise UsageError(f"the {scenario} cannot run '{name}': choose one of {', '.join(supported)}")
    with make_temporary_folder() as folder:  # asked for its version, a CLI may write files into its HOME
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "TMPDIR": folder}
        found = agents.find_program(home.path, home.config, adapter, environ)
    if found.why:
        raise AgentUnavailable(found.name, why=found.why)
    declaration = adapter.declaration
    return ModelPlayer(name, found.binary, found.version, declaration.gate, declaration.gate_reason)


def _render_command_policy(sandbox: Sandbox) -> str:
    return f"""\
[[rule]]
name = "upload"
command = ["upload"]
class = "effect"
decision = "allow"
key = ["1"]
target = "{{1}}"
probe = {json.dumps(sandbox.probe)}

[[rule]]
name = "build"
command = ["build"]
class = "local"

[[rule]]
name = "look"
command = ["look"]
class = "read"

[[rule]]
name = "task"
command = ["task"]
class = "local"
"""


# --- the model


class CaseModel(Script):
    """Asks for the steps of a case one by one, before the kill and after it."""

    def __init__(self, case: DrillCase, folder: str) -> None:
        """`folder` is the agent's workspace: a file tool needs absolute paths."""
        super().__init__(())
        first = _build_replies(case, case.first_life)
        if case.streams:
            first[-1] = first[-1]._replace(write=(f"{folder}/rest.txt", _REST), hang="middle")
        self._first = [*first, Reply(hang="before")]
        self._second = [*_build_replies(case, case.second_life), Reply(say="All steps are done.")]
        self._lock = threading.Lock()

    def next_reply(self, asked: ModelRequest) -> Reply:
        """The next step of the life that asks; a subagent does its task and reports it."""
        if not asked.tools:
            return Reply(say="ok")
        resumed = RESUME_HEADING in asked.text
        if not resumed and PROMPT not in asked.text:  # a subagent
            match = _TASK.search(asked.text)
            name = match[1] if match else "unknown"
            return Reply(say=f"{name} is done") if asked.results else Reply(shell=f"task {name}")  # noqa: S604 - the agent's shell
        with self._lock:
            life = self._second if resumed else self._first
            return life.pop(0) if len(life) > 1 else life[0]


def _build_replies(case: DrillCase, steps: tuple[ToolStep, ...]) -> list[Reply]:
    """One reply for each step; tasks that run at the same time share one."""
    tasks = [step for step in steps if step.tool == "task"]
    if not case.together or not tasks:
        return [_build_reply(step) for step in steps]
    first = steps.index(tasks[0])
    after = [step for step in steps[first:] if step not in tasks]
    together = Reply(calls=tuple(map(_build_task_call, tasks)))
    return [*map(_build_reply, steps[:first]), together, *map(_build_reply, after)]


def _build_reply(step: ToolStep) -> Reply:
    if step.tool == "task":
        return Reply(calls=(_build_task_call(step),))
    return Reply(shell=f"{step.tool} {step.name}")  # noqa: S604 - the agent's shell, not ours


def _build_task_call(step: ToolStep) -> dict[str, Any]:
    arguments = {
        "description": f"Task {step.name}",
        "prompt": f"Run the task named {step.name}.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    return {"tool": SUBAGENT_TOOL, "input": arguments}
