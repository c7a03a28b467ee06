"""Forks of runs of the real Claude Code: a copy of the conversation, an unharmed parent, a copy that is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.fake_model.script import Reply
from tests.agents.stage import RUN
from tests.agents.test_claude_door import Door, SetStage, deliver, set_stage

__all__ = ["set_stage"]

WAITS = 14
MAIL = """
[[rule]]
tool = "send"
class = "effect"
decision = "allow"
key = ["to", "text"]
target = "mail:{to}"
"""


def argv(stage: Door, run: str) -> list[list[str]]:
    rows = stage.events(run)
    return [row["data"]["argv"] for row in rows if row["kind"] == "turn.launched"]


def session_files(stage: Door) -> dict[str, Any]:
    return {path.stem: path for path in (stage.user / ".claude" / "projects").rglob("*.jsonl")}


def begun(set_stage: SetStage, *replies: Reply) -> Door:
    """A run that has sent a mail and remembers a word."""
    stage = set_stage(deliver("ada", "hello"), Reply(say="I shall remember periwinkle"), *replies)
    ended = stage.run("the word is heliotrope", *stage.policy("allow"))
    assert ended.code == 0, ended
    return stage


@pytest.mark.full
def test_a_fork_begins_with_a_copy_of_the_conversation(set_stage: SetStage) -> None:
    stage = begun(set_stage, deliver("ada", "hello"), Reply(say="it was periwinkle"))
    session = stage.show()["sessions"]["claude"]
    before = session_files(stage)[session].read_bytes()
    ended = stage.type("fork", RUN, "which word was it?", "--run-id", "child", "--json")
    assert ended.code == 0, ended
    (launched,) = argv(stage, "child")
    assert launched[launched.index("--resume") + 1] == session
    assert "--fork-session" in launched
    copy = stage.show("child")["sessions"]["claude"]
    assert copy != session
    assert copy in session_files(stage)
    assert session_files(stage)[session].read_bytes() == before
    text = stage.model.wait(3)[2].text
    assert text.index("the word is heliotrope") < text.index("I shall remember periwinkle")
    assert text.index("I shall remember periwinkle") < text.index("which word was it?")
    assert f"This run continues from step 2 of run {RUN}" in text
    assert [call["decision"] for call in stage.show("child")["calls"]] == ["stored"]
    assert stage.outbox == ["ada hello"]


@pytest.mark.full
def test_both_go_on_with_their_own_session(set_stage: SetStage) -> None:
    """The child is resumed in its copy; the parent's session can still be gone on with."""
    stage = begun(set_stage, Reply(shell="deliver bob hello"), Reply(say="sent"), Reply(say="still here"))
    stage.policy("ask")
    assert stage.type("fork", RUN, "tell bob", "--run-id", "child").code == 0
    parent, child = (stage.show(run)["sessions"]["claude"] for run in (RUN, "child"))
    assert stage.run("are you there?", "--session", parent, run_id="later").code == 0
    text = stage.model.wait(5)[-1].text
    assert "I shall remember periwinkle" in text
    assert "tell bob" not in text
    assert parent != child


@pytest.mark.full
def test_a_conversation_that_is_gone_is_made_up_for_by_the_facts(set_stage: SetStage) -> None:
    stage = begun(set_stage, Reply(say="I read it"))
    session_files(stage)[stage.show()["sessions"]["claude"]].unlink()
    ended = stage.type("fork", RUN, "which word was it?", "--run-id", "child")
    assert ended.code == 0, ended
    first, second = argv(stage, "child")
    assert ("--fork-session" in first, "--fork-session" in second) == (True, False)
    text = stage.model.wait(3)[-1].text
    assert "heliotrope" not in text
    assert "which word was it?" in text
    assert "Already done; do not repeat, in these or in other words:\n- mail → mail:ada" in text
    assert "session.lost" in [row["kind"] for row in stage.events("child")]


@pytest.mark.full
def test_from_an_earlier_step_the_conversation_is_a_fresh_one(set_stage: SetStage) -> None:
    """A conversation cannot be copied up to a point: what came after it would be known."""
    stage = set_stage(deliver("ada", "hello"), Reply(say="then not"), Reply(say="fresh"))
    assert stage.run("the word is heliotrope", *stage.policy("ask")).code == WAITS
    ((call,),) = stage.calls("id")
    assert stage.type("answer", RUN, call, "deny", "--resume").code == 0
    assert stage.type("fork", RUN, "again", "--step", "2", "--run-id", "child").code == 0
    (launched,) = argv(stage, "child")
    assert "--fork-session" not in launched
    text = stage.model.wait(3)[-1].text
    assert "heliotrope" not in text
    assert f"This run continues from step 2 of run {RUN}" in text


def test_another_agent_that_takes_over_is_asked_about_a_target_that_was_touched(set_stage: SetStage) -> None:
    """In one attempt: what its predecessor's session did is not what this one remembers."""
    stage = set_stage(deliver("ada", "dear"), Reply(say="sent"))
    send = {"tool": "send", "input": {"to": "ada", "text": "hello"}, "run": "true"}
    script = stage.folder / "script.json"
    script.write_text(json.dumps({"version": 1, "steps": [{"call": send}, {"limit": {"resets_in": 3600}}]}))
    flag, path = stage.policy("allow")
    with open(path, "a") as file:
        file.write(MAIL)
    words = ("--agent", "scripted", "--fallback", "claude", "--script", str(script), flag, path)
    ended = stage.type("run", "send a mail", "--run-id", RUN, *words)
    assert (ended.code, "waiting: approval" in ended.out) == (WAITS, True), ended
    assert stage.calls("attempt", "turn", "decision") == [(1, 1, "allow"), (1, 2, "ask")]
    assert "'mail:ada' was already touched" in stage.calls("reason")[1][0]
    assert stage.outbox == []
