"""What the tests of one adapter begin with: a request of a turn, and the recordings of its CLI as it hears them."""

from __future__ import annotations

from typing import Any

from jackline.domain.adapter import Adapter, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Usage, UsageMeter
from tests.support.recordings import FOLDER, TELLING


def turn_request(**facts: Any) -> TurnRequest:
    given = {
        "run_id": "r", "attempt": 1, "turn": 1, "role": "work", "prompt": "hello", "workspace": "/home/ada/project",
        "folder": "/home/ada/runs/r/agent", "gate": "", "token": "",
    }  # fmt: skip
    return TurnRequest(**{**given, **facts})


class Ear:
    """Listens to what was recorded of a CLI, with its adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def lines(self, name: str) -> list[bytes]:
        path = FOLDER / self._adapter.declaration.name / f"{name}.jsonl"
        return path.read_bytes().splitlines(keepends=True)

    def hear(self, name: str) -> tuple[AgentEvent, ...]:
        return tuple(heard for line in self.lines(name) for heard in self._adapter.parse(line))

    def outcome_of(self, name: str, exit_: Exit, tail: str = "") -> Outcome:
        return self._adapter.classify(exit_, tuple(one for one in self.hear(name) if one.kind in TELLING), tail)

    def used(self, name: str, before: Usage | None = None) -> Usage:
        meter = UsageMeter(before or Usage())
        for heard in self.hear(name):
            if heard.usage is not None:
                meter.add(heard)
        return meter.total

    def texts(self, name: str, kind: str) -> list[str]:
        return [heard.text for heard in self.hear(name) if heard.kind == kind]
