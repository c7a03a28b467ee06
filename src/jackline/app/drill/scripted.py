"""How the scripted agent plays a case: its script and its policy, written into the case's folder. Starts nothing."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jackline.app.drill import subagents
from jackline.app.drill.place import probe, write
from jackline.app.drill.playing import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.drill.cases import Case, Step
    from jackline.app.drill.place import Place

_TOOLS = {"task": "Task"}


class Scripted:
    """The agent without a model."""

    name = "scripted"

    @contextmanager
    def playing(self, case: Case, place: Place) -> Iterator[Part]:
        """The words of `jackline run` that make it play the case."""
        script = {"version": 1, "session": not case.forgets, "steps": _steps(case, place)}
        write(place.at("script.json"), json.dumps(script, indent=2))
        write(place.at("policy.toml"), policy(place))
        yield Part(("--script", place.at("script.json"), "--policy", place.at("policy.toml")), {})


def policy(place: Place) -> str:
    """What the gate is told of the tools."""
    return f"""\
[[rule]]
name = "upload"
tool = "upload"
class = "effect"
decision = "allow"
key = ["name"]
target = "{{name}}"
probe = {json.dumps(probe(place))}

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


def _steps(case: Case, place: Place) -> list[dict[str, Any]]:
    if not case.together:
        return [_step(step, place) for step in case.steps]
    tasks = [step for step in case.steps if step.tool == "task"]
    first = case.steps.index(tasks[0])
    others = [step for step in case.steps if step not in tasks]
    steps = [_step(step, place) for step in others]
    return [*steps[:first], _at_once(tasks, place), *steps[first:]]


def _step(step: Step, place: Place) -> dict[str, Any]:
    word = "prompt" if step.tool == "task" else "name"  # what a subagent is asked is checked by the gate
    call = {
        "tool": _TOOLS.get(step.tool, step.tool),
        "input": {word: step.name},
        "run": [place.tool(step.tool), f"{{{word}}}"],
        **({"external_id": "{stdout}"} if step.tool == "upload" else {}),
    }
    return {"call": call, **({"when": {"attempt_from": 2}} if step.late else {})}


def _at_once(tasks: list[Step], place: Place) -> dict[str, Any]:
    program = os.path.abspath(subagents.__file__)
    names = [task.name for task in tasks]
    run = [sys.executable, "-I", "-S", program, place.tool("task"), *names]
    return {"call": {"tool": "subagents", "input": {"names": names}, "run": run}}
