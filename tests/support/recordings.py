"""What the real CLIs printed (tests/agents/recorded), how they exited, and how that is to be judged."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackline.agents import registry
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from jackline.domain.states import Failure

FOLDER = Path(__file__).parents[1] / "agents" / "recorded"
TELLING = frozenset({"end", "error", "limit", "session"})  # what the engine keeps for `classify`


@dataclass(frozen=True)
class Recording:
    """One turn of a real CLI."""

    agent: str
    name: str
    exit: Exit
    stderr: str = ""
    failure: Failure | None = None
    session_lost: bool = False
    resets: bool = False  # the end of a limit is known

    def __str__(self) -> str:
        return f"{self.agent}-{self.name}"

    @property
    def lines(self) -> list[bytes]:
        return (FOLDER / self.agent / f"{self.name}.jsonl").read_bytes().splitlines(keepends=True)

    def hear(self, lines: list[bytes] | None = None) -> tuple[AgentEvent, ...]:
        adapter = registry.load_adapter(self.agent)
        return tuple(heard for line in (self.lines if lines is None else lines) for heard in adapter.parse(line))

    def judge(self, lines: list[bytes] | None = None) -> Outcome:
        telling = tuple(one for one in self.hear(lines) if one.kind in TELLING)
        return registry.load_adapter(self.agent).classify(self.exit, telling, self.stderr)

    def with_words(self, words: str) -> list[bytes]:
        """The same turn, in which the model says and thinks these words and no others."""
        spoken = {one.text for one in self.hear() if one.kind in {"message", "thinking"}} - {""}
        return [json.dumps(_replaced(json.loads(line), spoken, words)).encode() for line in self.lines]


def _replaced(value: Any, spoken: set[str], words: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, spoken, words) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, spoken, words) for one in value]
    return words if isinstance(value, str) and value in spoken else value


def _recording(agent: str, name: str, told: dict[str, Any]) -> Recording:
    return Recording(
        agent,
        name,
        Exit(told.get("exit"), told.get("signal")),
        told.get("stderr", ""),
        Failure(told["failure"]) if "failure" in told else None,
        told.get("session_lost", False),
        told.get("resets", False),
    )


def files() -> list[tuple[str, str]]:
    """Agent and name of everything that was recorded."""
    return sorted((path.parent.name, path.stem) for path in FOLDER.glob("*/*.jsonl"))


RECORDINGS = [
    _recording(agent, name, told)
    for agent, each in tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8")).items()
    for name, told in each.items()
]
