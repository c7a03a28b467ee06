"""The least that every real CLI must do for jackline, against a scripted model: quick enough for every run."""

from __future__ import annotations

from pathlib import Path

from jackline.fake_model.script import Reply
from tests.agents.conftest import Play

COMMAND = "pwd > where.txt; echo tool-output"
NO_EXIT_CODE = {"gemini", "qwen"}  # gemini reports none at all, qwen only that of a command that failed


def test_hello(play: Play) -> None:
    """The prompt reaches the model, and what it answers becomes the run's last message."""
    stage = play(Reply(say="good morning from the model"))
    ended = stage.run("say good morning, please")
    assert ended.code == 0, ended
    assert "say good morning, please" in stage.model.wait(1)[0].text
    shown = stage.show()
    assert shown["state"] == "succeeded"
    assert shown["turns"][-1]["last_message"] == "good morning from the model"


def test_tool_call(play: Play) -> None:
    """A tool runs without being asked about, in the workspace, and stands in the ledger with its end."""
    stage = play(Reply(say="looking", shell=COMMAND), Reply(say="done"))
    ended = stage.run("look around")
    assert ended.code == 0, ended
    assert (stage.repository / "where.txt").read_text().strip() == str(stage.repository)
    assert "tool-output" in stage.model.wait(2)[-1].text
    calls = stage.show()["calls"]
    assert [call["state"] for call in calls] == ["done"]
    assert "where.txt" in calls[0]["input"]
    assert "tool-output" in calls[0]["output"]
    finished = [one["data"] for one in stage.events() if one["kind"] == "agent.call.finished"]
    assert [one["tool"] for one in finished] == [calls[0]["tool"]]
    assert [one.get("exit_code") for one in finished] == [None if stage.agent in NO_EXIT_CODE else 0]
    lines = stage.type("logs").out.splitlines()
    said, command = lines.index(f"{stage.agent}: looking"), f"$ {COMMAND}   "
    place = next(number for number, line in enumerate(lines) if line.startswith(command))
    assert said < place
    assert "    tool-output" in lines[place : place + 6]
    assert f"{stage.agent}: done" in lines[place:]
    assert lines[-1] == "run: succeeded"


def test_edit_and_commit(play: Play, tmp_path: Path) -> None:
    """It writes a file by its own tool and commits it; the summary has the commit and the tokens."""
    stage = play(
        Reply(write=(str(tmp_path / "repository" / "note.txt"), "one line\n")),
        Reply(shell="git add note.txt && git commit --quiet --message 'Add a note'"),
        Reply(say="committed"),
    )
    ended = stage.run("add a note and commit it")
    assert ended.code == 0, ended
    assert stage.git("log", "-1", "--format=%s") == "Add a note"
    assert stage.git("show", "HEAD:note.txt") == "one line"
    shown = stage.show()
    assert [line.partition(" ")[2] for line in shown["changes"]["commits"]] == ["Add a note"]
    assert shown["tokens"] > 0
