"""What a real CLI's session is worth: recorded, gone on with, and made up for when it is lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from jackline.fake_model.script import Reply
from jackline.fake_model.wire import ModelRequest
from tests.agents import cells
from tests.agents.conftest import Play
from tests.agents.stage import SECONDS, Stage

pytestmark = pytest.mark.full
AT_ONCE = ("--retries", "2", "--retry-seconds", "0.1")
USAGE = Reply(tokens_input=1000, tokens_output=200, tokens_cached=300)
_SMALL = Reply()  # what a request without tools (a title) is charged


def counted(asked: Sequence[ModelRequest]) -> tuple[range, range]:
    """What may be charged for these requests, in and out: those with tools, and perhaps the small ones beside."""
    main = sum(bool(one.tools) for one in asked)
    small = len(asked) - main
    into = range(1000 * main, 1000 * main + _SMALL.tokens_input * small + 1)
    return into, range(200 * main, 200 * main + _SMALL.tokens_output * small + 1)


def test_tokens_and_session(agent: str, play: Play) -> None:
    """Tokens are those that the model claimed, each once; cached ones are counted as a part of the input."""
    stage = play(USAGE._replace(shell="true"), USAGE._replace(say="done"))
    assert stage.run("work").code == 0
    shown = stage.show()
    spent = shown["life"]["spent"]
    into, out = counted(stage.model.asked)
    assert spent["tokens_input"] in into
    assert spent["tokens_output"] in out
    assert spent["tokens_cached"] == 600
    assert shown["sessions"][agent] == shown["turns"][-1]["session"] != ""


def test_resume(agent: str, play: Play) -> None:
    """A second run that is given the session of the first: the model is shown both prompts and its own answer."""
    stage = play(Reply(say="I shall remember periwinkle"), Reply(say="it was periwinkle"))
    assert stage.run("the word is heliotrope").code == 0
    session = stage.show()["sessions"][agent]
    assert stage.run("which word was it?", "--session", session, run_id="second").code == 0
    text = stage.model.wait(2)[-1].text
    assert text.index("the word is heliotrope") < text.index("I shall remember periwinkle")
    assert text.index("I shall remember periwinkle") < text.index("which word was it?")
    assert stage.show("second")["sessions"][agent] == session


def crash_once(stage: Stage) -> None:
    """A run whose CLI is killed while it waits for the model, and which is resumed by itself."""
    process = stage.start_run("the word is heliotrope", *AT_ONCE)
    stage.model.wait(2, SECONDS)
    stage.kill_agent()
    ended = stage.end_of(process)
    assert ended.code == 0, ended


def test_tokens_across_a_resume(agent: str, play: Play) -> None:
    """Some CLIs tell running totals of the session, some tell nothing of a turn that was killed: each counts once."""
    stage = play(USAGE._replace(shell="true"), Reply(hang="before"), USAGE._replace(say="done"))
    crash_once(stage)
    shown = stage.show()
    assert [turn["session"] for turn in shown["turns"]] == [shown["sessions"][agent]] * 2
    spent = shown["life"]["spent"]
    assert spent["tokens_input"] in range(2000, 2100)
    assert spent["tokens_output"] in range(200, 450)  # of a message that was cut off, the output may be untold
    assert "the word is heliotrope" in stage.model.wait(3)[-1].text


def test_tokens_of_an_adopted_session(agent: str, play: Play) -> None:
    """A run that goes on with a session pays for its own turns, not for what was done in it by hand before."""
    stage = play(USAGE._replace(say="by hand"), USAGE._replace(say="by the run"))
    assert stage.run("first").code == 0
    session = stage.show()["sessions"][agent]
    assert stage.run("second", "--session", session, run_id="second").code == 0
    assert stage.show("second")["life"]["spent"]["tokens_input"] in range(1000, 1100)


def test_unknown_session(agent: str, play: Play) -> None:
    """The task is done in a fresh session, and the run tells that the old one was not to be had."""
    stage = play(Reply(say="started over"))
    unknown = cells.UNKNOWN_SESSION.get(agent, cells.UNKNOWN_UUID)
    ended = stage.run("a task for anybody", "--session", unknown)
    assert ended.code == 0, ended
    assert "a task for anybody" in stage.model.wait(1)[0].text
    lost = [event for event in stage.events() if event["kind"] == "session.lost"]
    assert [event["data"]["agent"] for event in lost] == [agent]
    assert stage.show()["sessions"][agent] not in {"", unknown}
