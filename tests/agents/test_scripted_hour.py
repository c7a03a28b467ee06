"""An hour of a person with a real CLI in a real terminal: watch, approve, interrupt, redirect, spend, finish."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from tests.agents.stage import wait_until
from tests.agents.test_claude_door import Door
from tests.real_agents import binary
from tools.picture import PROMPT, Terminal

DEAR = 100_000  # tokens of one reply: more than the first budget of these runs allows


class Desk(Door):
    """A stage whose commands are typed into tmux."""

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join((str(Path(sys.executable).parent), super().environment["PATH"]))
        settings = {"PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "$ "}
        return {**super().environment, **settings}

    def wait_for_start(self) -> None:
        wait_until((self.repository / "started").exists, "the long command never started")


Sit = Callable[..., tuple[Desk, Terminal]]


@pytest.fixture
def sit(tmp_path: Path) -> Iterator[Sit]:
    """A terminal in the repository of a stage."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is missing")
    with ExitStack() as stack:

        def build(agent: str, *replies: Reply) -> tuple[Desk, Terminal]:
            model = stack.enter_context(FakeModel(Script(replies)))
            desk = Desk(agent, binary(agent), tmp_path, model)
            stack.callback(desk.close)
            desk.build()
            terminal = Terminal(tmp_path, desk.environment, start=desk.repository)
            stack.callback(terminal.close)
            terminal.wait_for(PROMPT)
            return desk, terminal

        yield build


def wait_for_end(terminal: Terminal) -> str:
    """The screen when the shell is back."""
    terminal.wait_for(PROMPT)
    return terminal.read()


def test_with_claude(sit: Sit) -> None:
    desk, terminal = sit(
        "claude",
        Reply(say="I look around first.", shell="echo one > seen && cat seen"),
        Reply(shell="deliver ada hello"),
        Reply(say="Now the long part.", shell="touch started && sleep 600"),
        Reply(say="I do it differently.", shell="echo short"),
        Reply(say="This was dear.", shell="echo dear", tokens_input=DEAR),
        Reply(say="All is done."),
    )
    policy = " ".join(desk.policy("ask"))
    terminal.type(f'jackline run "tell ada, then work" --agent claude --max-usd 0.1 {policy}')
    terminal.wait_for("I look around first")
    terminal.wait_for(r"\$ echo one > seen && cat seen .*local .*✓")
    terminal.wait_for(r"\$ deliver ada hello")
    terminal.wait_for(r"\[y")
    assert desk.outbox == []
    terminal.type("y")
    terminal.wait_for(r"\$ deliver ada hello .*effect .*✓")
    assert desk.outbox == ["ada hello"]
    desk.wait_for_start()
    terminal.press("C-c")
    assert "paused" in wait_for_end(terminal)
    terminal.type('clear; jackline resume 1 "do it differently"')
    terminal.wait_for("I do it differently")
    terminal.wait_for("waiting: budget")
    assert "--max-usd" in wait_for_end(terminal)
    assert any("do it differently" in one.text for one in desk.model.asked)
    terminal.type("clear; jackline resume 1 --max-usd 100; echo code=$?")
    terminal.wait_for("code=0")
    screen = terminal.read()
    assert "All is done." in screen
    assert "succeeded" in screen
    assert desk.outbox == ["ada hello"]


@pytest.mark.full
def test_with_codex(sit: Sit) -> None:
    """Nothing is asked: its gate is advisory. It reports tokens when a turn ends, so the cap holds between turns."""
    desk, terminal = sit(
        "codex",
        Reply(say="I look around first.", shell="echo one > seen && cat seen"),
        Reply(say="Now the long part.", shell="touch started && sleep 600"),
        Reply(say="I do it differently.", tokens_input=DEAR),
        Reply(say="All is done.", shell="touch finished"),
        Reply(say="Really all."),
    )
    terminal.type('jackline run "work" --agent codex --max-usd 0.3 --proof "test -e finished"')
    terminal.wait_for("I look around first")
    terminal.wait_for(r"\$ echo one > seen && cat seen .*✓")
    desk.wait_for_start()
    terminal.press("C-c")
    assert "paused" in wait_for_end(terminal)
    terminal.type('clear; jackline resume 1 "do it differently"')
    terminal.wait_for("I do it differently")
    terminal.wait_for("waiting: budget")
    assert "--max-usd" in wait_for_end(terminal)
    assert any("do it differently" in one.text for one in desk.model.asked)
    terminal.type("clear; jackline resume 1 --max-usd 1000; echo code=$?")
    terminal.wait_for("code=0")
    assert "proved" in terminal.read()


@pytest.mark.full
def test_a_run_begun_at_a_terminal_is_woken_by_a_process_without_one(sit: Sit) -> None:
    desk, terminal = sit("claude", Reply(shell="deliver ada hello"), Reply(say="It is sent."))
    policy = " ".join(desk.policy("ask"))
    terminal.type(f'jackline run "tell ada" --agent claude {policy}')
    terminal.wait_for(r"\[y")
    ended = desk.type("answer", "1", "allow")
    assert ended.code == 0, ended
    terminal.wait_for("It is sent")
    assert "succeeded" in wait_for_end(terminal)
    assert desk.outbox == ["ada hello"]


def test_a_closed_terminal_leaves_the_run_to_a_process_without_one(sit: Sit) -> None:
    desk, terminal = sit("claude", Reply(shell="deliver ada hello"), Reply(say="It is sent."))
    policy = " ".join(desk.policy("ask"))
    terminal.type(f'jackline run "tell ada" --agent claude {policy}')
    terminal.wait_for(r"\[y")
    terminal.close()
    wait_until(lambda: desk.type("answer", "1", "allow").code == 0, "the call was never answered")
    assert desk.type("resume", "1").code == 0
    assert desk.outbox == ["ada hello"]
