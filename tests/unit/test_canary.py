"""When an agent's door is tried, and when the note of an earlier trial is enough."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jackline.agents.claude import claude_adapter
from jackline.agents.claude.claude_adapter import ADAPTER
from jackline.agents.claude.claude_hooks import build_settings
from jackline.agents.registry import load_adapter
from jackline.app import canary, canary_trial
from jackline.app.agents import AgentProgram
from jackline.errors import AgentUnavailable, Ungated


class Trials:
    """Stands in for the trial: counts, and says what it is told to."""

    def __init__(self) -> None:
        self.count = 0
        self.why = ""

    def __call__(self, *_: object) -> str:
        self.count += 1
        return self.why


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Trials:
    trials = Trials()
    monkeypatch.setattr(canary_trial, "find_gate_fault", trials)
    return trials


@pytest.fixture
def found(tmp_path: Path) -> AgentProgram:
    program = tmp_path / "claude"
    program.write_text("one")
    return AgentProgram("claude", str(program), "2.1.325")


def test_a_door_that_held_is_not_tried_again(tmp_path: Path, trials: Trials, found: AgentProgram) -> None:
    for _ in range(3):
        canary.check_gate(str(tmp_path), ADAPTER, found)
    assert trials.count == 1
    assert (tmp_path / canary.CACHE).stat().st_mode & 0o777 == 0o600


def test_a_door_that_does_not_hold_is_tried_each_time_and_nothing_is_noted(
    tmp_path: Path, trials: Trials, found: AgentProgram
) -> None:
    trials.why = "ran a command without asking"
    for _ in range(2):
        with pytest.raises(Ungated, match="ran a command without asking; install another version"):
            canary.check_gate(str(tmp_path), ADAPTER, found)
    assert (Ungated.exit_code, issubclass(Ungated, AgentUnavailable)) == (18, True)
    assert trials.count == 2
    assert not (tmp_path / canary.CACHE).exists()


def test_another_program_in_its_place_is_tried(tmp_path: Path, trials: Trials, found: AgentProgram) -> None:
    canary.check_gate(str(tmp_path), ADAPTER, found)
    Path(found.binary).write_text("another")
    canary.check_gate(str(tmp_path), ADAPTER, found)
    canary.check_gate(str(tmp_path), ADAPTER, found._replace(version="2.1.326"))  # what a launcher starts today
    assert trials.count == 3


def test_each_account_is_tried_once(tmp_path: Path, trials: Trials, found: AgentProgram) -> None:
    for reference in ("claude", "claude@work", "claude@work", "claude@home", "claude", "claude@home", "claude@work"):
        canary.check_gate(str(tmp_path), load_adapter(reference), found._replace(name=reference))
    assert trials.count == 3
    Path(found.binary).write_text("another")
    canary.check_gate(str(tmp_path), load_adapter("claude@work"), found)
    canary.check_gate(str(tmp_path), load_adapter("claude@home"), found)
    assert trials.count == 5


def test_other_settings_are_tried(
    tmp_path: Path, trials: Trials, found: AgentProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary.check_gate(str(tmp_path), ADAPTER, found)
    before = build_settings

    def changed(address: str, token: str, reminder: Sequence[str] = ()) -> dict[str, Any]:
        return {**before(address, token, reminder), "more": True}

    monkeypatch.setattr(claude_adapter, "build_settings", changed)
    canary.check_gate(str(tmp_path), ADAPTER, found)
    assert trials.count == 2


def test_an_agent_without_hooks_has_nothing_to_prove(tmp_path: Path, trials: Trials, found: AgentProgram) -> None:
    canary.check_gate(str(tmp_path), load_adapter("scripted"), found)
    assert trials.count == 0
    assert not (tmp_path / canary.CACHE).exists()


def test_a_note_that_was_damaged_or_cannot_be_written_only_costs_time(
    tmp_path: Path, trials: Trials, found: AgentProgram
) -> None:
    (tmp_path / canary.CACHE).write_text("{")
    canary.check_gate(str(tmp_path), ADAPTER, found)
    assert list(json.loads((tmp_path / canary.CACHE).read_text())) == [found.binary]
    canary.check_gate(os.path.join(str(tmp_path), "nowhere"), ADAPTER, found)
    assert trials.count == 2
