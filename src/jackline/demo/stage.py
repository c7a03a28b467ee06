"""The stage of the demo: a temporary repository, a script for the agent, a policy for the gate. It starts nothing."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass

_CODE = "def add(a, b):\n    return a - b\n"
_TEST = """\
import unittest

from sums import add


class TestAdd(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 2), 4)


if __name__ == "__main__":
    unittest.main()
"""
_PROMPT = "Repair add() in sums.py, run the tests, and tell the team."


@dataclass(frozen=True, slots=True)
class Stage:
    """Where one act is played."""

    folder: str

    @property
    def workspace(self) -> str:
        """The repository that the agent works in."""
        return os.path.join(self.folder, "repository")

    @property
    def outbox(self) -> str:
        """The outside world: messages that were really sent."""
        return os.path.join(self.folder, "outbox.jsonl")

    @property
    def script(self) -> str:
        """What the scripted agent plays."""
        return os.path.join(self.folder, "script.json")

    @property
    def policy(self) -> str:
        """What the gate knows about the tools."""
        return os.path.join(self.folder, "policy.toml")

    @property
    def prompt(self) -> str:
        """The task."""
        return _PROMPT

    def messages(self) -> list[str]:
        """Every line that was really sent."""
        try:
            with open(self.outbox, encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []


def build(folder: str) -> Stage:
    """Write repository, script and policy."""
    stage = Stage(folder)
    os.makedirs(stage.workspace, mode=0o700)
    _write(os.path.join(stage.workspace, "sums.py"), _CODE)
    _write(os.path.join(stage.workspace, "test_sums.py"), _TEST)
    _write(stage.script, json.dumps(_script(stage), indent=2))
    _write(stage.policy, _policy(stage))
    return stage


def _script(stage: Stage) -> dict[str, object]:
    message = {"to": "team@example.org", "text": "add() is repaired and the tests pass"}
    outbox = _outbox_program()
    return {
        "version": 1,
        "steps": [
            {"think": "add() subtracts; the test says it must add."},
            {"edit": {"path": "sums.py", "find": "a - b", "replace": "a + b"}},
            {"call": {"tool": "run_tests", "input": {}, "run": [sys.executable, "-m", "unittest", "-q"]}},
            {
                "call": {
                    "tool": "send_message",
                    "input": message,
                    "run": [sys.executable, outbox, "send", stage.outbox, "{to}", "{text}"],
                    "external_id": "{stdout}",
                }
            },
            {"say": "Repaired add(); the tests pass; the team knows."},
        ],
    }


def _policy(stage: Stage) -> str:
    probe = shlex.join([sys.executable, _outbox_program(), "probe", stage.outbox])
    return f"""\
[[rule]]
name = "tests"
tool = "run_tests"
class = "local"

[[rule]]
name = "message"
tool = "send_message"
class = "effect"
decision = "allow"
key = ["to", "text"]
target = "message:{{to}}"
probe = {json.dumps(probe)}
"""


def _outbox_program() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "outbox.py")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
