"""The real Claude Code at a terminal: its words and calls are shown in order, each with its result."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply
from tests.agents.test_claude_door import Door, SetStage, set_stage
from tests.cli.place import Place
from tests.cli.test_terminal import Terminal, read_screen

__all__ = ["set_stage"]


@dataclass
class StagePlace(Place):
    """Commands at a terminal, in the place of a real CLI."""

    stage: Door | None = None

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def environment(self, **more: str) -> dict[str, str]:
        assert self.stage is not None
        return {**self.stage.environment, **more}


@pytest.mark.full
def test_words_and_calls_in_order(set_stage: SetStage) -> None:
    stage = set_stage(
        Reply(say="First I look.", shell="echo one"),
        Reply(say="Now it fails.", shell="exit 3"),
        Reply(shell="git push --force origin main"),
        Reply(say="All done."),
    )
    place = StagePlace(stage.folder, stage=stage)
    terminal = Terminal(place, "run", "look around", "--agent", "claude", "--run-id", "r")
    screen = read_screen(terminal.end())
    assert terminal.process.returncode == 0, screen
    start = screen.index("turn 1 started")
    shown = [re.sub(r" (\d+ms|[\d.]+s)\Z", " TIME", line) for line in screen[start:]]
    assert shown[1:5] == [
        "  First I look.",
        "$ echo one   read ✓ TIME",
        "  Now it fails.",
        "$ exit 3   read ✗ exit 3 TIME",
    ], screen
    denied = next(line for line in shown if line.startswith("$ git push --force origin main   effect ✗ denied"))
    assert shown.index(denied) > 4
    assert shown.count("  All done.") == 1
    assert shown[shown.index("  All done.") + 1].startswith("run r (#1) succeeded")
