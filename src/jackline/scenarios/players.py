"""Players: how an agent is set up to play a case. Holds the interface and the scripted player; starts nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from jackline.named import NamedTuple
from jackline.scenarios import subagents
from jackline.scenarios.drill_cases import DrillCase, ToolStep
from jackline.scenarios.sandbox import Sandbox, write_text


class PlayerSetup(NamedTuple):
    """The flags of `jackline run` for a case, and additions to its environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class CasePlayer(Protocol):
    """An agent that can play the cases."""

    name: str

    def prepare(self, case: DrillCase, sandbox: Sandbox) -> AbstractContextManager[PlayerSetup]:
        """Write the files of the case, and keep its helpers running for as long as the context is entered."""


class ScriptedPlayer:
    """The scripted agent, which needs no model."""

    name = "scripted"

    @contextmanager
    def prepare(self, case: DrillCase, sandbox: Sandbox) -> Iterator[PlayerSetup]:
        """Write the script and the policy."""
        script = {"version": 1, "session": not case.forgets, "steps": _build_steps(case, sandbox)}
        write_text(sandbox.at("script.json"), json.dumps(script, indent=2))
        write_text(sandbox.at("policy.toml"), render_policy(sandbox))
        yield PlayerSetup(("--script", sandbox.at("script.json"), "--policy", sandbox.at("policy.toml")), {})


def render_policy(sandbox: Sandbox) -> str:
    """Render the rules for the tools."""
    return f"""\
[[rule]]
name = "upload"
tool = "upload"
class = "effect"
decision = "allow"
key = ["name"]
target = "{{name}}"
probe = {json.dumps(sandbox.probe)}

[[rule]]
name = "build"
tool = "build"
class = "local"

[[rule]]
name = "look"
tool = "look"
class = "read"

[[rule]]
name = "task"
tool = "Task"
class = "local"
replay = "relaunch"

[[rule]]
name = "subagents"
tool = "subagents"
class = "local"
"""


def _build_steps(case: DrillCase, sandbox: Sandbox) -> list[dict[str, Any]]:
    if not case.together:
        return [_build_step(step, sandbox) for step in case.steps]
    tasks = [step for step in case.steps if step.tool == "task"]
    first = case.steps.index(tasks[0])
    steps = [_build_step(step, sandbox) for step in case.steps if step not in tasks]
    names = [task.name for task in tasks]
    program = os.path.abspath(subagents.__file__)
    run = [sys.executable, "-I", "-S", program, sandbox.tool("task"), *names]
    at_once = {"call": {"tool": "subagents", "input": {"names": names}, "run": run}}
    return [*steps[:first], at_once, *steps[first:]]


def _build_step(step: ToolStep, sandbox: Sandbox) -> dict[str, Any]:
    is_task = step.tool == "task"
    field = "prompt" if is_task else "name"  # the gate checks the prompt of a subagent
    call = {
        "tool": "Task" if is_task else step.tool,
        "input": {field: step.name},
        "run": [sandbox.tool(step.tool), f"{{{field}}}"],
        **({"external_id": "{stdout}"} if step.tool == "upload" else {}),
    }
    return {"call": call, **({"when": {"attempt_from": 2}} if step.late else {})}
