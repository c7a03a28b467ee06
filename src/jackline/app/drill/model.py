"""The model that plays a case for a real CLI: it asks for the steps one by one, before the kill and after it. No I/O.

It tells its two lives apart by what jackline says to a resumed agent, not by counting requests: a CLI that has lost its
gate may ask once more before it dies, and must not use up what is meant for the resume.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from jackline.app.drill.cases import PROMPT
from jackline.domain.packet import HEAD
from jackline.fake.script import Reply, Script

if TYPE_CHECKING:
    from jackline.app.drill.cases import Case, Step
    from jackline.fake.wire import Asked

TASK_TOOL = "Agent"
_TASK = re.compile(r"Run the task named (\w+)\.")
_REST = "the rest of the message, which never comes"  # a second call: the first must be whole in the first half


class Model(Script):
    """Two lives of replies."""

    def __init__(self, case: Case, folder: str) -> None:
        """`folder` is the agent's workspace: a file tool wants whole paths."""
        super().__init__(())
        first = _replies(case, case.first_life)
        if case.streams:
            first[-1] = first[-1]._replace(write=(f"{folder}/rest.txt", _REST), hang="middle")
        self._first = [*first, Reply(hang="before")]
        self._second = [*_replies(case, case.second_life), Reply(say="All steps are done.")]
        self._taking = threading.Lock()

    def take(self, asked: Asked) -> Reply:
        """The next step of the life that asks; a subagent does its task and says so."""
        if not asked.tools:
            return Reply(say="ok")
        resumed = HEAD in asked.text
        if not resumed and PROMPT not in asked.text:
            return _subagent(asked)
        with self._taking:
            life = self._second if resumed else self._first
            return life.pop(0) if len(life) > 1 else life[0]


def _replies(case: Case, steps: tuple[Step, ...]) -> list[Reply]:
    """A step for each reply; tasks that are to be in flight at once stand in one."""
    tasks = [step for step in steps if step.tool == "task"]
    if not case.together or not tasks:
        return [_reply(step) for step in steps]
    first = steps.index(tasks[0])
    after = [step for step in steps[first:] if step not in tasks]
    return [*map(_reply, steps[:first]), Reply(calls=tuple(map(_task, tasks))), *map(_reply, after)]


def _reply(step: Step) -> Reply:
    return Reply(calls=(_task(step),)) if step.tool == "task" else Reply(shell=f"{step.tool} {step.name}")  # noqa: S604


def _subagent(asked: Asked) -> Reply:
    named = _TASK.search(asked.text)
    name = named[1] if named else "unknown"
    return Reply(say=f"{name} is done") if asked.results else Reply(shell=f"task {name}")  # noqa: S604


def _task(step: Step) -> dict[str, Any]:
    given = {
        "description": f"Task {step.name}",
        "prompt": f"Run the task named {step.name}.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    return {"tool": TASK_TOOL, "input": given}
