"""`jackline sessions` lists what the real CLIs write, and `run --session` continues it."""

from __future__ import annotations

import pytest

from jackline.fake_model.script import Reply
from tests.agents.conftest import Play

SLOW = ("gemini", "qwen", "opencode", "kilo")


@pytest.mark.parametrize("agent", ["claude", "codex", *(pytest.param(name, marks=pytest.mark.full) for name in SLOW)])
def test_a_session_is_listed_with_its_folder_prompt_and_run(agent: str, play: Play) -> None:
    stage = play(Reply(say="hello there"))
    assert stage.run("the word is heliotrope\nsecond line").code == 0
    (listed,) = stage.type("sessions", "--agent", agent, "--json").rows
    assert listed["session"] == stage.show()["sessions"][agent]
    assert (listed["folder"], listed["agent"]) == (str(stage.repository), agent)
    assert listed["prompt"].startswith("the word is heliotrope")
    assert stage.type("list", "--session", listed["session"], "--json").json["id"] == listed["run"]
